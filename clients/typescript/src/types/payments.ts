/** Payments: what is sent to charge, capture and refund, and what the gateway answers. */

import type { Amount } from "../money.js";

/** One entry of a charge's or a checkout's list of items. */
export interface Item {
  name: string;
  number: string;
  quantity: number;
  unit_amount: Amount;
}

/** The body of a charge. */
export interface ChargeRequest {
  /** PAYMENT charges the amount now, AUTHORIZE authorizes it for a later capture. */
  type: "PAYMENT" | "AUTHORIZE";
  order_id: string;
  /** Item title or order number. */
  items: string;
  /** Three capital letters. */
  currency: string;
  amount: Amount;
  /** Id of a stored customer (`cus_…`), or the gateway's token. An app with a client token leaves it out. */
  customer_token?: string;
  custom_1?: string | null;
  custom_2?: string | null;
  notify_url?: string;
  itemList?: Item[];
}

/** The body of a capture: `description`, `deduction_details` or both. */
export interface CaptureRequest {
  /** Of an authorization, or the checkout's id. */
  authorization_token: string;
  amount: Amount;
  description?: string;
  deduction_details?: string;
}

/** The body of a refund; without an amount all that is left of the payment is refunded. */
export interface RefundRequest {
  payment_id: string;
  description: string;
  amount?: Amount;
}

/** The body of a void of an authorization. */
export interface VoidRequest {
  /** Of an authorization, or the checkout's id. */
  authorization_token: string;
  description: string;
}

/** A charge as the gateway reports it. What it left out is absent. */
export interface Charge {
  order_id: string;
  items?: string | null;
  currency: string;
  amount: Amount;
  custom_1?: string | null;
  custom_2?: string | null;
  payment_id: string;
  /** 2 is success; 3 is an authorization. */
  status_code?: number;
  status_message?: string | null;
  md5sig?: string | null;
  /** For a later capture; only an authorization has one, and no app gets it. */
  authorization_token?: string | null;
}

/** A capture as the gateway reports it; `amount` was authorized, `captured_amount` was captured. */
export interface Capture {
  order_id: string;
  items?: string | null;
  currency: string;
  amount: Amount;
  captured_amount?: Amount;
  payment_id: string;
  status_code?: number;
  status_message?: string | null;
  md5sig?: string | null;
  custom_1?: string | null;
  custom_2?: string | null;
}

/** The customer who paid, as the gateway records them. */
export interface PayerRecord {
  /** The interface's spelling. */
  fist_name?: string | null;
  last_name?: string | null;
  email?: string | null;
  phone?: string | null;
  delivery_details?: { address?: string | null; city?: string | null; country?: string | null } | null;
}

/** The gateway's fee and the net amount. */
export interface AmountDetail {
  currency?: string | null;
  gross?: Amount | null;
  fee?: Amount | null;
  net?: Amount | null;
  /** With the gateway's digits. */
  exchange_rate?: string | null;
  exchange_from?: string | null;
  exchange_to?: string | null;
}

/** The card; all digits but the last four are asterisks. */
export interface PaymentMethod {
  method?: string | null;
  card_customer_name?: string | null;
  card_no?: string | null;
}

/** One item of a purchase. */
export interface LineItem {
  name?: string | null;
  quantity?: number | null;
  currency?: string | null;
  unit_price?: Amount | null;
  total_price?: Amount | null;
}

/** A payment as the gateway records it. */
export interface PaymentRecord {
  payment_id: string;
  order_id?: string | null;
  /** `YYYY-MM-DD HH:MM:SS`, in the gateway's time zone. */
  date?: string | null;
  description?: string | null;
  /** `RECEIVED`, `REFUND REQUESTED`, `REFUND PROCESSING`, `REFUNDED`, `CHARGEBACKED`. */
  status?: string | null;
  currency: string;
  amount: Amount;
  customer?: PayerRecord;
  amount_detail?: AmountDetail;
  payment_method?: PaymentMethod;
  items?: LineItem[] | null;
}

/** What was read from the gateway, and how fresh it is. */
export interface Reading<T> {
  readonly data: T;
  /** True where the gateway gives no answer now, and this is the last one that is known. */
  readonly isStale: boolean;
  /** The seconds since the gateway was asked. */
  readonly ageS: number;
  /** The ids of payments that took money, and that the gateway's record doesn't show yet; of a read of payments. */
  readonly missing: readonly string[];
}
