/** Checkouts: the gateway's page for a customer. */
import { Noun, segment } from "./noun.js";
/** The calls about checkouts. */
export class Checkouts extends Noun {
    /**
     * Opens a checkout; the same call gives the same checkout again, as it stands by then. With `again: true` another one is
     * opened where the last one failed, was cancelled, closed or has expired. Its name is the order, unless another one is given.
     */
    async open(request, options) {
        const call = { method: "POST", path: "/checkouts", body: request };
        return (await this.effects.openCheckout(call, request.order_id, options));
    }
    /** Gives a checkout, as far as its outcome is known now. */
    show(id, options) {
        return this.data({ method: "GET", path: `/checkouts/${segment(id)}` }, options);
    }
    /**
     * Closes the page of a checkout, so that its order is free for another one; may be repeated. Where `may_still_be_paid` is
     * true, a form of it is out, and a later payment completes it. Throws Conflict where it was paid or held.
     */
    close(id, options) {
        return this.data({ method: "DELETE", path: `/checkouts/${segment(id)}` }, options);
    }
}
