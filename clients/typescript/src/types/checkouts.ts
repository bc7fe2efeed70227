/** Checkouts: requests to customers that they answer on the gateway's page. */

import type { Amount } from "../money.js";
import type { Item } from "./payments.js";

/** What a checkout asks for. */
export type CheckoutKind = "payment" | "preapproval" | "recurring" | "authorization";

/** The customer who pays; the gateway wants every member. */
export interface Payer {
  first_name: string;
  last_name: string;
  email: string;
  phone: string;
  address: string;
  city: string;
  country: string;
}

interface CheckoutBasis {
  order_id: string;
  items: string;
  currency: string;
  customer: Payer;
  custom_1?: string | null;
  custom_2?: string | null;
  platform?: string;
  /** Your own name for the customer; an approved card is stored under it. */
  customer_reference?: string;
  return_to?: string;
  cancel_to?: string;
  /** How long the page accepts customers: 60 to 86400 seconds, usually 1800. */
  expires_in_s?: number;
}

interface WithItems {
  delivery?: { address?: string; city?: string; country?: string };
  itemList?: Item[];
}

/** Asks a customer to pay. */
export interface PaymentCheckout extends CheckoutBasis, WithItems {
  type: "payment";
  amount: Amount;
  payment_method?: "VISA" | "MASTER" | "AMEX" | "HELAPAY" | "FRIMI" | "QPLUS";
}

/** Asks a customer to approve a card; without an amount nothing is charged now. */
export interface PreapprovalCheckout extends CheckoutBasis {
  type: "preapproval";
  amount?: Amount;
}

/** Asks a customer to let an amount be authorized. */
export interface AuthorizationCheckout extends CheckoutBasis {
  type: "authorization";
  amount: Amount;
}

/** Asks a customer to subscribe. */
export interface RecurringCheckout extends CheckoutBasis, WithItems {
  type: "recurring";
  amount: Amount;
  /** How often: `2 Week`, `1 Month`, `1 Year`. */
  recurrence: string;
  /** For how long: as above, or `Forever`. */
  duration: string;
  /** Added to the first payment; below 0 it is a discount on it. */
  startup_fee?: Amount;
  auto_cancel?: boolean;
  max_retries?: number;
  recurring_start_date?: string;
  is_recovery_due?: boolean;
}

/** The body of a new checkout. */
export type CheckoutRequest = PaymentCheckout | PreapprovalCheckout | AuthorizationCheckout | RecurringCheckout;

/** A checkout; only `completed` is final. */
export interface Checkout {
  id: string;
  kind: CheckoutKind;
  state: "open" | "notified" | "completed" | "failed" | "cancelled" | "expired";
  /** `closed` where it is cancelled because its page was closed. */
  reason: string | null;
  /** Whether the customer may pay it yet: on its page, or by a form that is out. */
  may_still_be_paid: boolean;
  explanation: string;
  account: string;
  order_id: string;
  amount: Amount | null;
  currency: string;
  customer_reference: string | null;
  payment_id: string | null;
  subscription_id: string | null;
  customer_id: string | null;
  created_at: string;
  updated_at: string;
  expires_at: string;
}

/** A checkout with the address to open; both are null once it accepts no customer any more. */
export interface OpenedCheckout extends Checkout {
  /** Open it in the system's browser. */
  url: string | null;
  /** For those who post the signed form from a page of their own. */
  form: { action: string; fields: Record<string, string> } | null;
}
