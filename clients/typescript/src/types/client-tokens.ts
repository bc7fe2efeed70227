/** Client tokens: short-lived credentials for apps. */

import type { Amount } from "../money.js";
import type { CheckoutKind } from "./checkouts.js";

/** What a client token may do. */
export type ClientScope =
  | "payments:charge"
  | "payments:read"
  | "checkouts:create"
  | "checkouts:read"
  | "customers:read"
  | "events:read"
  | "operations:read"
  | "subscriptions:read"
  | "subscriptions:cancel";

/** The body of a request for a client token: for a customer, for an order, or for both. */
export interface ClientTokenRequest {
  customer_id?: string;
  order_id?: string;
  type?: CheckoutKind;
  /** The exact amount of each payment; with `open` the app chooses it. */
  amount?: Amount | "open";
  amount_max?: Amount;
  currency?: string;
  /** How many payments the order may have in all: 1 to 100. */
  payments?: number;
  recurrence?: string;
  duration?: string;
  startup_fee?: Amount;
  scopes?: ClientScope[];
  /** 60 to 3600 seconds, usually 900. */
  expires_in_s?: number;
}

/** A client token without its text. */
export interface ClientToken {
  id: string;
  customer_id: string | null;
  order_id: string | null;
  type: CheckoutKind | null;
  amount: Amount | "open" | null;
  amount_max: Amount | null;
  currency: string | null;
  payments: number | null;
  recurrence: string | null;
  duration: string | null;
  startup_fee: Amount | null;
  scopes: ClientScope[];
  credential_id: string;
  issued_at: string;
  expires_at: string;
  revoked_at: string | null;
}

/** A new client token with its text, which is shown this once. */
export interface IssuedClientToken extends ClientToken {
  token: string;
}
