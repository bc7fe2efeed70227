// A shop's day with clients that were generated from the description: charge, repeat, decline, 202, a wrong body.
// Compiled first, so that whatever the types forbid is found before anything is sent. Prints what it saw as JSON.

import createClient from "openapi-fetch";

import { charge, listOperations, retrievePayments } from "./hey/index.js";
import { client as hey } from "./hey/client.gen.js";
import type { ChargeRequest } from "./hey/types.gen.js";
import type { components, paths } from "./openapi.js";

declare const process: { env: Record<string, string | undefined> };
const { PAYRELAY = "", PAYRELAY_KEY = "" } = process.env;

const order: ChargeRequest = {
  type: "PAYMENT",
  order_id: "HeyOrder1",
  items: "Taxi Hire 124",
  currency: "LKR",
  amount: 345.67,
  customer_token: "D3A0".repeat(8),
  custom_1: null,
};
const headers = { Authorization: `Bearer ${PAYRELAY_KEY}` };
const seen: Record<string, unknown> = {};

hey.setConfig({ baseUrl: PAYRELAY, headers });
const first = await charge({ body: order, headers: { "Idempotency-Key": "hey-1" } });
const again = await charge({ body: order, headers: { "Idempotency-Key": "hey-1" } });
if (first.data?.status === 1 && again.data?.status === 1) {
  const id: number | null | undefined = first.data.data.payment_id;
  seen.hey_repeat_is_equal = id === again.data.data.payment_id;
  seen.hey_id_is_whole = Number.isSafeInteger(id);
}
const declined = await charge({ body: { ...order, order_id: "HeyOrder2", customer_token: "DEC1".repeat(8) } });
seen.hey_declined = declined.error?.error.code;
const slow = await charge({ body: { ...order, order_id: "HeySlow" } });
seen.hey_open = slow.data?.status === 0 ? slow.data.error.code : null;
seen.hey_open_is_error = slow.error !== undefined;
const wrong = await charge({ body: { ...order, amount: 10.100000000000001 } });
seen.hey_wrong = wrong.error?.error.fields?.map((each) => each.path);
const payments = await retrievePayments({ path: { id: "HeyOrder1" } });
seen.hey_payments = payments.data?.data.length;
const operations = await listOperations({ query: { limit: 1 } });
seen.hey_has_next_page = typeof operations.data?.next_cursor === "string";

const typed = createClient<paths>({ baseUrl: PAYRELAY, headers });
const body: components["schemas"]["ChargeRequest"] = { ...order, order_id: "TypedOrder1" };
const paid = await typed.POST("/gateway/api/payments/charge", { body });
seen.typed_paid = paid.data?.status === 1 ? paid.data.data.order_id : null;
const unpaid = await typed.POST("/gateway/api/payments/charge", {
  body: { ...body, order_id: "TypedOrder2", customer_token: "DEC1".repeat(8) },
});
seen.typed_declined = unpaid.error?.error.code;
const open = await typed.POST("/gateway/api/payments/charge", { body: { ...body, order_id: "TypedSlow" } });
seen.typed_open = open.data?.status === 0 ? open.data.error.code : null;

console.log(JSON.stringify(seen));
