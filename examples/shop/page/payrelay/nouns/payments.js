/** Payments: charges, authorizations, captures, refunds and voids. */
import { NotFound } from "../errors.js";
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
     * Refunds a payment, or a part of it; gives the gateway's number of the refund. With a store a part needs a name, such as that of
     * the return.
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
    /** Gives the successful payments of an order; none where it has none. */
    async ofOrder(orderId, options = {}) {
        try {
            return await this.reading(`/payments/${segment(orderId)}`, options);
        }
        catch (error) {
            if (error instanceof NotFound && Array.isArray(error.data))
                return { data: [], isStale: false, ageS: 0 };
            throw error;
        }
    }
}
