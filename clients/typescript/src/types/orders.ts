/** Orders: what was paid, held, given back, charged back and left. */

import type { Amount } from "../money.js";
import type { CheckoutKind } from "./checkouts.js";
import type { Operation } from "./operations.js";

/** Something of a balance that isn't certain: the word for programs, and a sentence for people. */
export interface BalanceDoubt {
  /** `open_operation`, `open_page`, `parts_not_shown` and so on; words may be added. */
  kind: string;
  explanation: string;
  id: string | null;
  payment_id: string | null;
  amount: Amount | null;
  currency: string | null;
}

/** Where a figure of a payment comes from. */
export interface BalanceFigure {
  figure: "paid" | "held" | "given_back" | "charged_back";
  source: "operation" | "checkout" | "installment" | "import" | "chargeback" | "record";
  /** Null for an operation or a checkout that the caller may not read. */
  id: string | null;
  /** Null where the source names none, as a refund of the whole. */
  amount: Amount | null;
  currency: string | null;
}

/** Sums of one currency: `paid` is `given_back`, `charged_back` and `left` together. */
export interface CurrencyBalance {
  currency: string;
  paid: Amount;
  held: Amount;
  given_back: Amount;
  charged_back: Amount;
  left: Amount;
}

/** One payment of an order. `paid` and `left` are null where money was taken, and nothing says how much. */
export interface PaymentBalance {
  payment_id: string | null;
  currency: string | null;
  paid: Amount | null;
  held: Amount;
  /** When the hold lapses at the latest. */
  held_until: string | null;
  given_back: Amount;
  charged_back: Amount;
  left: Amount | null;
  is_certain: boolean;
  figures: BalanceFigure[];
  doubts: BalanceDoubt[];
}

/** A page of an order, in short. */
export interface OrderCheckout {
  id: string;
  kind: CheckoutKind;
  state: "open" | "notified" | "completed" | "failed" | "cancelled" | "expired";
  explanation: string;
  amount: Amount | null;
  currency: string;
  payment_id: string | null;
  subscription_id: string | null;
  created_at: string;
  updated_at: string;
}

/** The money of an order. `…_left_out` says how many more there are than are shown. */
export interface Order {
  order_id: string;
  account: string;
  is_certain: boolean;
  /** False where the order has too much to be added up: then there are neither sums nor payments. */
  is_complete: boolean;
  balances: CurrencyBalance[];
  payments: PaymentBalance[];
  payments_left_out: number;
  doubts: BalanceDoubt[];
  operations: Operation[];
  operations_left_out: number;
  checkouts: OrderCheckout[];
  checkouts_left_out: number;
}
