/** What all groups of calls have in common: a call to the data of its answer, and lists. */

import type { Call, Caller } from "../calls.js";
import type { Effects } from "../effects.js";
import { NotFound } from "../errors.js";
import { nextLink, type Page, Pages, queryMember } from "../paging.js";
import type { CallOptions } from "../settings.js";
import type { Answer } from "../transport.js";
import type { Reading } from "../types/payments.js";

/** Options of a read that the gateway answers. */
export interface ReadOptions extends CallOptions {
  /** Asks the gateway now, whatever was read before: for a decision about goods or money. */
  isFresh?: boolean;
}

type Query = Readonly<Record<string, string | number | undefined>>;

/** The calls about one noun. */
export abstract class Noun {
  constructor(
    protected readonly caller: Caller,
    protected readonly effects: Effects,
  ) {}

  protected async data<T>(call: Call, options?: CallOptions): Promise<T> {
    return (await this.caller.ask(call, options)).data as T;
  }

  protected async reading<T>(path: string, options: ReadOptions = {}, query: Query = {}): Promise<Reading<T>> {
    return readingOf(await this.caller.ask(gatewayRead(path, options, query), options));
  }

  /** A list of the gateway's; an empty one where it has none. */
  protected async readingOfList<T>(path: string, options?: ReadOptions): Promise<Reading<T[]>> {
    try {
      return await this.reading<T[]>(path, options);
    } catch (error) {
      if (error instanceof NotFound && Array.isArray(error.data)) return { data: [], isStale: false, ageS: 0, missing: [] };
      throw error;
    }
  }

  /** A list whose answers name the next page in a Link header. */
  protected linked<T>(path: string, query: object, options?: CallOptions): Pages<T> {
    const page = async (cursor: string | undefined): Promise<Page<T>> => {
      const got = await this.caller.ask({ method: "GET", path, query: { ...(query as Query), cursor } }, options);
      const link = nextLink(got.headers.get("Link"));
      const next = link === null ? null : queryMember(link, "cursor");
      return { items: got.data as unknown as T[], next: next === null ? null : () => page(next) };
    };
    return new Pages(() => page(undefined));
  }
}

export function gatewayRead(path: string, options: ReadOptions, query: Query = {}): Call {
  const headers: Record<string, string> = options.isFresh === true ? { "Cache-Control": "no-cache" } : {};
  return { method: "GET", path, query, headers };
}

export function readingOf<T>(got: Answer): Reading<T> {
  const ageS = Number(got.headers.get("Age") ?? "0");
  return {
    data: got.data as T,
    isStale: got.headers.get("Payrelay-Stale") === "true",
    ageS: Number.isFinite(ageS) ? ageS : 0,
    missing: (got.headers.get("Payrelay-Missing") ?? "").split(",").filter((id) => id !== ""),
  };
}

/** Encodes an id as one segment of a path. */
export function segment(id: string): string {
  // A segment of one or two dots would be taken for a step up.
  return /^\.{1,2}$/.test(id) ? id.replace(/\./g, "%2E") : encodeURIComponent(id);
}
