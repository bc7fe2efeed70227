/** Orders: what was paid, held, given back, charged back and left of each. */
import { Noun, segment } from "./noun.js";
/** The calls about orders. */
export class Orders extends Noun {
    /**
     * Gives the balance of an order, with its payments, operations and pages; the gateway isn't asked. Look at `is_certain` before
     * you decide by a figure. Throws NotFound where nothing is known of the order.
     */
    show(orderId, options) {
        return this.data({ method: "GET", path: `/orders/${segment(orderId)}` }, options);
    }
}
