/** Events: the feed, the stream of one subject, and the endpoints that get webhooks. */
import { Pages } from "../paging.js";
import { openStream } from "../stream.js";
import { Noun, segment } from "./noun.js";
const DELIVERIES_USUAL = 20;
/** The calls about events. */
export class Events extends Noun {
    /** Reads one part of the feed, oldest first; with `waitS` an empty part is held until there is an event. */
    page(filter = {}, options) {
        const { waitS, ...query } = filter;
        const headers = waitS === undefined ? {} : { Prefer: `wait=${Math.floor(waitS)}` };
        return this.data({ method: "GET", path: "/events", query, headers }, options);
    }
    /** Reads the feed from a position to its present end. */
    list(filter = {}, options) {
        const page = async (after) => {
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
    stream(subject, options) {
        return openStream(this.caller, subject, options);
    }
}
/** The calls about endpoints. What would be done a second time is not repeated after a lost reply. */
export class Endpoints extends Noun {
    /** Registers an endpoint; its secret is shown this once. After a lost reply list them first. */
    create(endpoint, options) {
        return this.data({ method: "POST", path: "/endpoints", body: endpoint, isOnce: true }, options);
    }
    /** Gives all endpoints. */
    list(options) {
        return this.data({ method: "GET", path: "/endpoints" }, options);
    }
    /** Gives an endpoint. */
    show(id, options) {
        return this.data({ method: "GET", path: `/endpoints/${segment(id)}` }, options);
    }
    /** Changes, pauses, stops or starts an endpoint. */
    change(id, changes, options) {
        return this.data({ method: "PATCH", path: `/endpoints/${segment(id)}`, body: changes }, options);
    }
    /** Removes an endpoint. */
    async remove(id, options) {
        await this.data({ method: "DELETE", path: `/endpoints/${segment(id)}` }, options);
    }
    /** Gives an endpoint a new secret; the old one stays valid for a day. */
    rotate(id, options) {
        return this.data({ method: "POST", path: `/endpoints/${segment(id)}/rotate`, isOnce: true }, options);
    }
    /** Sends a test event; gives its id. */
    async test(id, options) {
        const call = { method: "POST", path: `/endpoints/${segment(id)}/test`, isOnce: true };
        return (await this.data(call, options)).event_id;
    }
    /** Sends events again, with their ids. Where `after` of the result is a number, go on after it. */
    replay(id, events, after, options) {
        const path = `/endpoints/${segment(id)}/replay`;
        return this.data({ method: "POST", path, query: { after }, body: events, isOnce: true }, options);
    }
    /** Lists the deliveries to an endpoint, newest first. */
    deliveries(id, filter = {}, options) {
        const path = `/endpoints/${segment(id)}/deliveries`;
        const limit = filter.limit ?? DELIVERIES_USUAL;
        const page = async (before) => {
            const query = { ...filter, limit, before };
            const items = await this.data({ method: "GET", path, query }, options);
            const last = items.at(-1);
            return { items, next: last === undefined || items.length < limit ? null : () => page(last.position) };
        };
        return new Pages(() => page(undefined));
    }
}
