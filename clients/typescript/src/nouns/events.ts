/** Events: the feed, the stream of one subject, and the endpoints that get webhooks. */

import { type Page, Pages } from "../paging.js";
import type { CallOptions } from "../settings.js";
import { openStream, type StreamOptions } from "../stream.js";
import type {
  Delivery,
  Endpoint,
  EndpointChanges,
  EndpointRequest,
  EventFilter,
  IssuedEndpoint,
  PayrelayEvent,
  ReplayRequest,
  ReplayResult,
} from "../types/events.js";
import { Noun, segment } from "./noun.js";

/** A part of the feed, and the position to continue after. */
export interface EventPage {
  events: PayrelayEvent[];
  next: number;
}

const DELIVERIES_USUAL = 20;

/** The calls about events. */
export class Events extends Noun {
  /** Reads one part of the feed, oldest first; with `waitS` an empty part is held until there is an event. */
  page(filter: EventFilter & { limit?: number; waitS?: number } = {}, options?: CallOptions): Promise<EventPage> {
    const { waitS, ...query } = filter;
    const headers: Record<string, string> = waitS === undefined ? {} : { Prefer: `wait=${Math.floor(waitS)}` };
    return this.data({ method: "GET", path: "/events", query, headers }, options);
  }

  /** Reads the feed from a position to its present end. */
  list(filter: EventFilter & { limit?: number } = {}, options?: CallOptions): Pages<PayrelayEvent> {
    const page = async (after: number): Promise<Page<PayrelayEvent>> => {
      const { events, next } = await this.page({ ...filter, after }, options);
      // A rare type may leave a page empty before the end; only a position that stays is the end.
      return { items: events, next: next === after ? null : () => page(next) };
    };
    return new Pages(() => page(filter.after ?? 0));
  }

  /**
   * Follows one operation (`operation:op_…`) or checkout (`checkout:chk_…`): first what is known, then what comes, until the call's
   * time is over.
   */
  stream(subject: string, options?: StreamOptions): AsyncGenerator<PayrelayEvent, void, undefined> {
    return openStream(this.caller, subject, options);
  }
}

/** The calls about endpoints. What would be done a second time is not repeated after a lost reply. */
export class Endpoints extends Noun {
  /** Registers an endpoint; its secret is shown this once. After a lost reply list them first. */
  create(endpoint: EndpointRequest, options?: CallOptions): Promise<IssuedEndpoint> {
    return this.data({ method: "POST", path: "/endpoints", body: endpoint, isOnce: true }, options);
  }

  /** Gives all endpoints. */
  list(options?: CallOptions): Promise<Endpoint[]> {
    return this.data({ method: "GET", path: "/endpoints" }, options);
  }

  /** Gives an endpoint. */
  show(id: string, options?: CallOptions): Promise<Endpoint> {
    return this.data({ method: "GET", path: `/endpoints/${segment(id)}` }, options);
  }

  /** Changes, pauses, stops or starts an endpoint. */
  change(id: string, changes: EndpointChanges, options?: CallOptions): Promise<Endpoint> {
    return this.data({ method: "PATCH", path: `/endpoints/${segment(id)}`, body: changes }, options);
  }

  /** Removes an endpoint. */
  async remove(id: string, options?: CallOptions): Promise<void> {
    await this.data({ method: "DELETE", path: `/endpoints/${segment(id)}` }, options);
  }

  /** Gives an endpoint a new secret; the old one stays valid for a day. */
  rotate(id: string, options?: CallOptions): Promise<IssuedEndpoint> {
    return this.data({ method: "POST", path: `/endpoints/${segment(id)}/rotate`, isOnce: true }, options);
  }

  /** Sends a test event; gives its id. */
  async test(id: string, options?: CallOptions): Promise<string> {
    const call = { method: "POST", path: `/endpoints/${segment(id)}/test`, isOnce: true } as const;
    return (await this.data<{ event_id: string }>(call, options)).event_id;
  }

  /** Sends events again, with their ids. Where `after` of the result is a number, go on after it. */
  replay(id: string, events: ReplayRequest, after?: number, options?: CallOptions): Promise<ReplayResult> {
    const path = `/endpoints/${segment(id)}/replay`;
    return this.data({ method: "POST", path, query: { after }, body: events, isOnce: true }, options);
  }

  /** Lists the deliveries to an endpoint, newest first. */
  deliveries(
    id: string,
    filter: { state?: Delivery["state"]; limit?: number } = {},
    options?: CallOptions,
  ): Pages<Delivery> {
    const path = `/endpoints/${segment(id)}/deliveries`;
    const limit = filter.limit ?? DELIVERIES_USUAL;
    const page = async (before: number | undefined): Promise<Page<Delivery>> => {
      const query = { ...filter, limit, before };
      const items = await this.data<Delivery[]>({ method: "GET", path, query }, options);
      const last = items.at(-1);
      return { items, next: last === undefined || items.length < limit ? null : () => page(last.position) };
    };
    return new Pages(() => page(undefined));
  }
}
