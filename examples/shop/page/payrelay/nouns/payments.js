/** Payments: charges, authorizations, captures, refunds and voids. */
import { Noun, segment } from "./noun.js";
/** The calls about payments. */
export class Payments extends Noun {
    /** Charges a customer, or authorizes an amount. The payment's name is the order, unless another one is given. */
    charge(request, options) {
        const call = { method: "POST", path: "/payments/charge", body: request };
        return this.effects.run({ kind: "charge", call, name: request.order_id }, options);
    }
    /** Captures an authorization, or a part of it. With a store it needs a name, such as the order. */
    capture(request, options) {
        const call = { method: "POST", path: "/payments/capture", body: request };
        return this.effects.run({ kind: "capture", call }, options);
    }
    /**
     * Refunds all that is left of a payment, or a part of it; gives the gateway's number of the refund. With a store a part needs a
     * name, such as that of the return. Without a store two equal parts within the service's repeat window (24 hours) are one refund.
     */
    refund(request, options) {
        const call = { method: "POST", path: "/payments/refund", body: request };
        const name = request.amount === undefined ? request.payment_id : undefined;
        return this.effects.run({ kind: "refund", call, name }, options);
    }
    /** Lets an authorization go. With a store it needs a name, such as the order. */
    void(request, options) {
        const call = { method: "POST", path: "/payments/refund", body: request };
        return this.effects.run({ kind: "void", call }, options);
    }
    /**
     * Gives the successful payments of an order; none where it has none. `missing` names payments that took money and that the gateway
     * doesn't show yet. Where it shows none at all, and some took money, this throws Busy: the order isn't unpaid.
     */
    ofOrder(orderId, options = {}) {
        return this.readingOfList(`/payments/${segment(orderId)}`, options);
    }
}
