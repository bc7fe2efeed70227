/** Client tokens, which a server issues to an app. */
import { Noun, segment } from "./noun.js";
/** The calls about client tokens. */
export class ClientTokens extends Noun {
    /** Issues a client token. Where a reply is lost another token is issued, and nobody has the first one. */
    issue(request, options) {
        return this.data({ method: "POST", path: "/client-tokens", body: request }, options);
    }
    /** Lists the tokens that have not expired, newest first. */
    list(filter = {}, options) {
        return this.linked("/client-tokens", filter, options);
    }
    /** Revokes one token; gives how many were revoked. */
    async revoke(id, options) {
        const call = { method: "DELETE", path: `/client-tokens/${segment(id)}` };
        return (await this.data(call, options)).revoked;
    }
    /** Revokes the tokens of a customer, or those that a key issued, or all of yours; gives how many. */
    async revokeAll(filter = {}, options) {
        const call = { method: "DELETE", path: "/client-tokens", query: { ...filter } };
        return (await this.data(call, options)).revoked;
    }
}
