import assert from "node:assert/strict";
import { test } from "node:test";

import { Busy, Declined, Forbidden, NoAnswer, Payrelay, ServiceFault, Stopped, Unauthenticated } from "payrelay-client";
import { ADDRESS, CHARGE, CHARGED, envelope, failure, fakeFetch, nothing, QUICK } from "./fakes.mjs";

const client = (fetch, more = {}) => new Payrelay({ address: ADDRESS, credential: "prk_1", fetch, ...QUICK, ...more });
const done = envelope(200, CHARGED, undefined, { "Payrelay-Operation": "op_1" });

test("the same bytes go again after each answer that allows it", async () => {
  const answers = [nothing, { status: 502, text: "<html>" }, failure(500, "internal", "same_key"), done];
  const fetch = fakeFetch(...answers);
  const outcome = await client(fetch).payments.charge(CHARGE);
  assert.deepEqual(outcome, {
    isDone: true,
    data: { ...CHARGED, amount: "345.67", payment_id: "320025021815" },
    operationId: "op_1",
    isReplay: false,
  });
  assert.equal(new Set(fetch.asked.map(({ url, method, body }) => `${method} ${url} ${body}`)).size, 1);
  assert.equal(fetch.asked.length, 4);
});

test("an answer for which the same helps never ends the call at once", async () => {
  const fetch = fakeFetch(failure(402, "declined", "never"));
  await assert.rejects(client(fetch).payments.charge(CHARGE), (error) => error instanceof Declined && error.requestId === "req_1");
  assert.equal(fetch.asked.length, 1);
});

test("a client without a store sends no key", async () => {
  const fetch = fakeFetch(done);
  await client(fetch).payments.charge(CHARGE);
  assert.equal(Object.keys(fetch.asked[0].headers).some((name) => /idempotency/i.test(name)), false);
});

test("beyond the limits an unknown outcome is open, and following asks again", async () => {
  const fetch = fakeFetch(nothing, nothing, nothing, nothing, done);
  const outcome = await client(fetch).payments.charge(CHARGE);
  assert.deepEqual([outcome.isDone, outcome.reason, outcome.operationId], [false, "no_answer", null]);
  assert.equal((await outcome.follow()).isDone, true);
});

test("without doubt a busy service is an error, which says that nothing was done", async () => {
  const fetch = fakeFetch(failure(503, "gateway_busy", "after"));
  await assert.rejects(client(fetch).payments.charge(CHARGE), Busy);
  assert.equal(fetch.asked.length, QUICK.tries);
});

test("in doubt a busy service leaves it open", async () => {
  const outcome = await client(fakeFetch(nothing, failure(503, "gateway_busy", "after"))).payments.charge(CHARGE);
  assert.deepEqual([outcome.isDone, outcome.reason], [false, "gateway_busy"]);
});

test("in doubt a refused credential says nothing of the payment", async () => {
  const outcome = await client(fakeFetch(nothing, failure(401, "unauthenticated", "never"))).payments.charge(CHARGE);
  assert.deepEqual([outcome.isDone, outcome.reason], [false, "unauthenticated"]);
  await assert.rejects(client(fakeFetch(failure(401, "unauthenticated", "never"))).payments.charge(CHARGE), Unauthenticated);
});

test("in doubt a decline is the answer", async () => {
  await assert.rejects(client(fakeFetch(nothing, failure(402, "declined", "never"))).payments.charge(CHARGE), Declined);
});

test("a pause is no shorter than Retry-After, and one beyond the call's time isn't begun", async () => {
  const waits = [];
  const onWait = (wait) => waits.push(wait);
  const fetch = fakeFetch(failure(429, "rate_limited", "after", { "Retry-After": "1" }), failure(429, "rate_limited", "after", { "Retry-After": "60" }));
  const began = performance.now();
  await assert.rejects(client(fetch, { onWait }).payments.charge(CHARGE), (error) => error instanceof Busy && error.retryAfterS === 60);
  assert.ok(performance.now() - began < 4000);
  assert.deepEqual(waits, [{ reason: "rate_limited", seconds: 1, tries: 1, requestId: "req_1", operationId: null }]);
});

test("pauses double, stay below the longest, and are drawn from their upper half", async () => {
  const waits = [];
  const limits = { tries: 6, pauseS: 0.01, pauseMaxS: 0.04, onWait: ({ seconds }) => waits.push(seconds) };
  await assert.rejects(client(fakeFetch(nothing), limits).operations.show("op_1"), NoAnswer);
  assert.equal(waits.length, 5);
  for (const [index, longest] of [0.01, 0.02, 0.04, 0.04, 0.04].entries()) {
    assert.ok(waits[index] >= longest / 2 && waits[index] <= longest, `${waits[index]} of ${longest}`);
  }
});

test("an answer that takes too long is lost", async () => {
  const never = ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const reasons = [];
  const limits = { timeoutS: 0.02, tries: 2, onWait: ({ reason }) => reasons.push(reason) };
  const outcome = await client(fakeFetch(never), limits).payments.charge(CHARGE);
  assert.deepEqual([outcome.reason, reasons], ["no_answer", ["time_out"]]);
});

test("a caller's signal ends a call, and it says whether its outcome is known", async () => {
  const controller = new AbortController();
  const onWait = () => controller.abort(new Error("the page was left"));
  const call = client(fakeFetch(nothing), { onWait, pauseS: 1, pauseMaxS: 1 }).payments.charge(CHARGE, { signal: controller.signal });
  await assert.rejects(call, (error) => error instanceof Stopped && error.isOpen && error.cause.message === "the page was left");
  const fetch = fakeFetch(done);
  const signal = AbortSignal.abort();
  await assert.rejects(client(fetch).payments.charge(CHARGE, { signal }), (error) => error instanceof Stopped && !error.isOpen);
  assert.equal(fetch.asked.length, 0);
});

test("an answer that isn't the service's is no answer", async () => {
  const wrong = [
    { status: 200, text: "<html>" },
    { status: 200, text: '{"status":1,"msg":"said"}' },
    { status: 200, text: '{"status":-1,"msg":"said","data":null}' },
    { status: 404, text: '{"status":-1,"msg":"said","data":null}' },
    { status: 403, text: '{"detail":"a proxy"}' },
    { status: 200, text: '{"status":1,"msg":"said","data":{}' },
    { status: 302, text: "", headers: { Location: "http://elsewhere.example/" } },
  ];
  for (const answer of wrong) {
    const outcome = await client(fakeFetch(answer)).payments.charge(CHARGE);
    assert.deepEqual([outcome.isDone, outcome.reason], [false, "no_answer"], answer.text);
  }
});

test("a function for the credential is called again after a 401, once", async () => {
  const tokens = ["old", "new"];
  const fetch = fakeFetch(failure(401, "unauthenticated", "never"), done);
  const outcome = await client(fetch, { credential: async () => tokens.shift() }).payments.charge(CHARGE);
  assert.equal(outcome.isDone, true);
  assert.deepEqual(fetch.asked.map(({ headers }) => headers.Authorization), ["Bearer old", "Bearer new"]);
  const refused = fakeFetch(failure(401, "unauthenticated", "never"));
  await assert.rejects(client(refused, { credential: () => "old" }).payments.charge(CHARGE), Unauthenticated);
  assert.equal(refused.asked.length, 2);
});

test("what would be done twice is sent again only where the service says so", async () => {
  const fetch = fakeFetch(nothing);
  await assert.rejects(client(fetch).endpoints.create({ url: "https://shop.example/" }), NoAnswer);
  assert.equal(fetch.asked.length, 1);
  const fault = fakeFetch(failure(500, "internal", "same_key"));
  await assert.rejects(client(fault).endpoints.create({ url: "https://shop.example/" }), ServiceFault);
  assert.equal(fault.asked.length, 1);
  const busy = fakeFetch(failure(503, "unavailable", "after"), envelope(200, { id: "end_1" }));
  assert.equal((await client(busy).endpoints.create({ url: "https://shop.example/" })).id, "end_1");
});

test("a code that nobody knows goes by its status and by what it says of repeating", async () => {
  await assert.rejects(client(fakeFetch(failure(403, "moon_phase", "never"))).operations.show("op_1"), Forbidden);
  await assert.rejects(client(fakeFetch(failure(503, "moon_phase", "after"))).operations.show("op_1"), Busy);
});

test("settings that are wrong are named", () => {
  assert.throws(() => client(fakeFetch(done), { tries: 0 }), /tries/);
  assert.throws(() => client(fakeFetch(done), { waitS: 5, timeoutS: 5 }), /waitS/);
  assert.throws(() => new Payrelay({ address: "pay.example.com", credential: "prk_1" }), /address/);
});
