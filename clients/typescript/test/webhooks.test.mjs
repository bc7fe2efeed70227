import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";

import { WebhookRefused } from "payrelay-client";
import { verifyWebhook } from "payrelay-client/webhooks";

const SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD4vDtmOZ0hS0=";
const OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = JSON.stringify({ id: "evt_1", type: "operation.succeeded", data: { amount: "345.67", text: "රු" } });

/** The headers as the standard's own library signs. */
function signed(body = BODY, secret = SECRET, at = new Date()) {
  return {
    "Webhook-Id": "evt_1",
    "Webhook-Timestamp": String(Math.floor(at.getTime() / 1000)),
    "Webhook-Signature": new Webhook(secret).sign("evt_1", at, body),
  };
}

test("what the standard's library signs is believed, as text and as bytes, under plain headers and others", async () => {
  for (const body of [BODY, new TextEncoder().encode(BODY)]) {
    for (const headers of [signed(), new Headers(signed())]) {
      assert.equal((await verifyWebhook(SECRET, headers, body)).data.amount, "345.67");
    }
  }
});

test("the standard's own example is believed", async () => {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  // Its body is no event, so that the refusal must come from there and not from the signature.
  const now = new Date(1614265330_000);
  await assert.rejects(verifyWebhook(OTHER, headers, '{"test": 2432232314}', { now }), /no event/);
});

test("either of two secrets will do while one is changed", async () => {
  assert.equal((await verifyWebhook([OTHER, SECRET], signed(), BODY)).id, "evt_1");
});

test("the right signature is found among however many others", async () => {
  const right = signed();
  const others = "v1,AAAA v1, v1,x v2,AAAA ".repeat(1000);
  const many = { ...right, "Webhook-Signature": others + right["Webhook-Signature"] };
  assert.equal((await verifyWebhook(SECRET, many, BODY)).id, "evt_1");
  await assert.rejects(verifyWebhook(SECRET, { ...right, "Webhook-Signature": others }, BODY), WebhookRefused);
});

test("everything else is refused", async () => {
  const right = signed();
  const cases = [
    [right, `${BODY} `],
    [signed(BODY, OTHER), BODY],
    [signed(BODY, SECRET, new Date(Date.now() - 301_000)), BODY],
    [signed(BODY, SECRET, new Date(Date.now() + 302_000)), BODY],
    [{ ...right, "Webhook-Id": "evt_2" }, BODY],
    [{ ...right, "Webhook-Id": undefined }, BODY],
    [{ ...right, "Webhook-Signature": right["Webhook-Signature"].replace("v1,", "v2,") }, BODY],
    [{ ...right, "Webhook-Signature": "v1,x" }, BODY],
    [{ ...right, "Webhook-Timestamp": "soon" }, BODY],
    [{ ...right, "webhook-id": "evt_1" }, BODY],
  ];
  for (const [headers, body] of cases) await assert.rejects(verifyWebhook(SECRET, headers, body), WebhookRefused);
  await assert.rejects(verifyWebhook("whsec_", right, BODY), TypeError);
});
