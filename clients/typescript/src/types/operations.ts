/** Operations: what changes something at the gateway, and what became of it. */

import type { Json } from "../json.js";
import type { Amount } from "../money.js";

/** How far an operation has come. */
export type OperationState =
  | "accepted"
  | "sending"
  | "succeeded"
  | "declined"
  | "refused"
  | "not_sent"
  | "pending"
  | "unknown"
  | "needs_attention"
  | "held"
  | "failed";

/** An operation; times are RFC 3339 in UTC, and the amount is that of the request. */
export interface Operation {
  id: string;
  /** `charge`, `authorize`, `capture`, `refund`, `void`, `retry`, `cancel`; kinds may be added. */
  kind: string;
  state: OperationState;
  /** A sentence that can be shown to a customer. */
  explanation: string;
  is_final: boolean;
  account: string;
  principal: string;
  idempotency_key: string | null;
  request_id: string;
  order_id: string | null;
  payment_id: string | null;
  subscription_id: string | null;
  customer_id: string | null;
  amount: Amount | null;
  currency: string | null;
  created_at: string;
  updated_at: string;
  send_by: string;
}

/** One entry of an operation's history. */
export interface HistoryEntry {
  at: string;
  state: OperationState;
  text: string;
  evidence: { [member: string]: Json };
}

/** A payment that the bank took back. */
export interface Chargeback {
  payment_id: string;
  amount: Amount;
  currency: string;
  at: string;
  notification_id: string;
}

/** An operation with all that is known of it. */
export interface OperationDetail extends Operation {
  history: HistoryEntry[];
  chargebacks: Chargeback[];
  /** The answer that its request gets; null where there is none yet, or it isn't shown. */
  answer: { http_status: number; body: Json } | null;
}

/** Which operations are listed. */
export interface OperationFilter {
  state?: OperationState;
  kind?: string;
  order_id?: string;
  payment_id?: string;
  subscription_id?: string;
  customer_id?: string;
}

/** Whether the service lost commits of its database. */
export interface Recovery {
  incarnation: number;
  is_recovering: boolean;
  lost_since: string | null;
  lost_until: string | null;
  acknowledged_at: string | null;
}
