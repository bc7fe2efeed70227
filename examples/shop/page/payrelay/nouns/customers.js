/** Stored customers. */
import { Noun, segment } from "./noun.js";
/** The calls about stored customers. */
export class Customers extends Noun {
    /** Lists customers, newest first. */
    list(filter = {}, options) {
        return this.linked("/customers", filter, options);
    }
    /** Gives a customer. */
    show(id, options) {
        return this.data({ method: "GET", path: `/customers/${segment(id)}` }, options);
    }
    /** Stores a customer by a gateway's token that you have already. A lost reply is not repeated: list them first. */
    import(customer, options) {
        return this.data({ method: "POST", path: "/customers", body: customer, isOnce: true }, options);
    }
    /** Gives a customer another reference or label. */
    change(id, names, options) {
        return this.data({ method: "PATCH", path: `/customers/${segment(id)}`, body: names }, options);
    }
    /** Removes a customer, and destroys its token. */
    remove(id, options) {
        return this.data({ method: "DELETE", path: `/customers/${segment(id)}` }, options);
    }
    /** Erases the personal data of a customer, and destroys its key. */
    erase(id, options) {
        return this.data({ method: "POST", path: `/customers/${segment(id)}/erase` }, options);
    }
}
