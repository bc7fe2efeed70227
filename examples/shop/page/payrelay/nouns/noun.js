/** What all groups of calls have in common: a call to the data of its answer, and lists. */
import { NotFound } from "../errors.js";
import { nextLink, Pages, queryMember } from "../paging.js";
/** The calls about one noun. */
export class Noun {
    caller;
    effects;
    constructor(caller, effects) {
        this.caller = caller;
        this.effects = effects;
    }
    async data(call, options) {
        return (await this.caller.ask(call, options)).data;
    }
    async reading(path, options = {}, query = {}) {
        return readingOf(await this.caller.ask(gatewayRead(path, options, query), options));
    }
    /** A list of the gateway's; an empty one where it has none. */
    async readingOfList(path, options) {
        try {
            return await this.reading(path, options);
        }
        catch (error) {
            if (error instanceof NotFound && Array.isArray(error.data))
                return { data: [], isStale: false, ageS: 0, missing: [] };
            throw error;
        }
    }
    /** A list whose answers name the next page in a Link header. */
    linked(path, query, options) {
        const page = async (cursor) => {
            const got = await this.caller.ask({ method: "GET", path, query: { ...query, cursor } }, options);
            const link = nextLink(got.headers.get("Link"));
            const next = link === null ? null : queryMember(link, "cursor");
            return { items: got.data, next: next === null ? null : () => page(next) };
        };
        return new Pages(() => page(undefined));
    }
}
export function gatewayRead(path, options, query = {}) {
    const headers = options.isFresh === true ? { "Cache-Control": "no-cache" } : {};
    return { method: "GET", path, query, headers };
}
export function readingOf(got) {
    const ageS = Number(got.headers.get("Age") ?? "0");
    return {
        data: got.data,
        isStale: got.headers.get("Payrelay-Stale") === "true",
        ageS: Number.isFinite(ageS) ? ageS : 0,
        missing: (got.headers.get("Payrelay-Missing") ?? "").split(",").filter((id) => id !== ""),
    };
}
/** Encodes an id as one segment of a path. */
export function segment(id) {
    // A segment of one or two dots would be taken for a step up.
    return /^\.{1,2}$/.test(id) ? id.replace(/\./g, "%2E") : encodeURIComponent(id);
}
