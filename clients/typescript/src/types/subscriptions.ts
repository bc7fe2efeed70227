/** Subscriptions: the gateway's records of them, and the states that the service knows. */

import type { Amount } from "../money.js";
import type { AmountDetail, LineItem, PayerRecord, PaymentMethod, PaymentRecord } from "./payments.js";

/** A subscription as the gateway records it. */
export interface SubscriptionRecord {
  subscription_id: string;
  order_id?: string | null;
  /** `YYYY-MM-DD HH:MM:SS`, in the gateway's time zone. */
  date?: string | null;
  description?: string | null;
  /** How often and for how long, in words. */
  recurring?: string | null;
  /** `ACTIVE`, `COMPLETED`, `FAILED`, … */
  status?: string | null;
  currency: string;
  amount: Amount;
  customer?: PayerRecord;
  amount_detail?: AmountDetail;
  payment_method?: PaymentMethod;
  items?: LineItem[] | null;
  /** Only where they were asked for. */
  payments?: PaymentRecord[];
}

/** One installment. */
export interface Installment {
  payment_id: string | null;
  amount: Amount | null;
  /** RFC 3339, in UTC. */
  at: string;
}

/** The state of a subscription as the service knows it, without asking the gateway. */
export interface SubscriptionState {
  subscription_id: string;
  state: "active" | "completed" | "stopped";
  explanation: string;
  /** True where the newest installment failed. */
  is_failing: boolean;
  order_id: string | null;
  amount: Amount | null;
  currency: string | null;
  installments_paid: number;
  /** A date; null where no further installment is due or known. */
  next_on: string | null;
  last_paid: Installment | null;
  last_failure: Installment | null;
  /** When the state became known. */
  as_of: string;
}
