/** Client tokens, which a server issues to an app. */

import type { Pages } from "../paging.js";
import type { CallOptions } from "../settings.js";
import type { ClientToken, ClientTokenRequest, IssuedClientToken } from "../types/client-tokens.js";
import { Noun, segment } from "./noun.js";

/** The calls about client tokens. */
export class ClientTokens extends Noun {
  /** Issues a client token. Where a reply is lost another token is issued, and nobody has the first one. */
  issue(request: ClientTokenRequest, options?: CallOptions): Promise<IssuedClientToken> {
    return this.data({ method: "POST", path: "/client-tokens", body: request }, options);
  }

  /** Lists the tokens that have not expired, newest first. */
  list(filter: { customer_id?: string; limit?: number } = {}, options?: CallOptions): Pages<ClientToken> {
    return this.linked("/client-tokens", filter, options);
  }

  /** Revokes one token; gives how many were revoked. */
  async revoke(id: string, options?: CallOptions): Promise<number> {
    const call = { method: "DELETE", path: `/client-tokens/${segment(id)}` } as const;
    return (await this.data<{ revoked: number }>(call, options)).revoked;
  }

  /** Revokes the tokens of a customer, or those that a key issued, or all of yours; gives how many. */
  async revokeAll(filter: { customer_id?: string; credential_id?: string } = {}, options?: CallOptions): Promise<number> {
    const call = { method: "DELETE", path: "/client-tokens", query: { ...filter } } as const;
    return (await this.data<{ revoked: number }>(call, options)).revoked;
  }
}
