/** Stored customers: people who approved a card, which may be charged later. */

/** A stored customer. */
export interface Customer {
  id: string;
  state: "active" | "removed" | "erased";
  explanation: string;
  version: number;
  account: string;
  principal: string;
  /** Your own name for the customer. */
  reference: string | null;
  label: string | null;
  /** Such as `VISA`. */
  method: string | null;
  card_no_masked: string | null;
  card_expiry: string | null;
  has_holder: boolean;
  order_id: string | null;
  payment_id: string | null;
  created_at: string;
  updated_at: string;
}

/** What is left of an erased customer. */
export interface ErasedCustomer extends Customer {
  files_cleared: boolean;
}

/** The body that stores a customer by a gateway's token that you have already. */
export interface CustomerImport {
  customer_token: string;
  reference?: string | null;
  label?: string | null;
  method?: string | null;
  card_no_masked?: string | null;
  card_expiry?: string | null;
  card_holder?: string | null;
}

/** The body that changes a customer's names: an absent member stays, null removes the name. */
export interface CustomerNames {
  reference?: string | null;
  label?: string | null;
}

/** Which customers are listed. */
export interface CustomerFilter {
  reference?: string;
  state?: Customer["state"];
}
