/** Operations: what became of a charge, a refund and so on; and the recovery of a database that lost commits. */
import { follow } from "../follow.js";
import { Noun, segment } from "./noun.js";
/** The calls about operations. */
export class Operations extends Noun {
    /** Lists operations, newest first. */
    list(filter = {}, options) {
        return this.linked("/operations", filter, options);
    }
    /** Gives an operation with its history and evidence. */
    show(id, options) {
        return this.data({ method: "GET", path: `/operations/${segment(id)}` }, options);
    }
    /** Gives the newest operation under an Idempotency-Key. */
    byKey(key, options) {
        return this.data({ method: "GET", path: `/operations/by-key/${segment(key)}` }, options);
    }
    /**
     * Gives an operation once it is final or an operator must decide about it; as it is, where the call's time is over before.
     *
     * `by` says how changes are learned of: by answers that the service holds (`wait`, the default), by asking again (`poll`), or
     * by the stream of events (`stream`), which falls back to waiting where `fetch` gives no streams.
     */
    async follow(id, options = {}) {
        const { by = "wait", signal } = options;
        return (await follow(this.caller, id, by, this.caller.deadline(options), signal)).operation;
    }
}
/** The calls about a recovery. */
export class Recoveries extends Noun {
    /** Tells whether the service lost commits of its database, and whether you have acknowledged that. */
    show(options) {
        return this.data({ method: "GET", path: "/recovery" }, options);
    }
    /** Acknowledges that you have repeated every request of the lost time that got no answer. */
    acknowledge(incarnation, options) {
        return this.data({ method: "POST", path: "/recovery/acknowledgement", body: { incarnation } }, options);
    }
}
