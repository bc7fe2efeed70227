import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { AttemptOpen, Declined, InvalidAmount, InvalidRequest, KeyReused, NameNeeded, Payrelay, StoreFailed } from "payrelay-client";
import { asyncStorageStore, localStorageStore } from "payrelay-client";
import { fileStore } from "payrelay-client/node";
import { ADDRESS, CHARGE, CHARGED, envelope, failure, fakeFetch, fakeStore, nothing, QUICK } from "./fakes.mjs";

const client = (fetch, store) => new Payrelay({ address: ADDRESS, credential: "prk_1", fetch, store, ...QUICK });
const done = envelope(200, CHARGED);
const PLACE = "charge/gateway/A%201";
const keysOf = (fetch) => fetch.asked.map(({ headers }) => headers["Idempotency-Key"]);
const recordIn = (store) => JSON.parse(store.kept.get(PLACE));

test("a key is in the store before the request leaves", async () => {
  const store = fakeStore();
  let stored;
  const fetch = fakeFetch(() => {
    stored = recordIn(store);
    return done;
  });
  await client(fetch, store).payments.charge(CHARGE);
  assert.deepEqual(stored, { v: 1, attempt: 1, key: `${PLACE}/1`, state: "open" });
  assert.deepEqual(keysOf(fetch), [`${PLACE}/1`]);
  assert.equal(recordIn(store).state, "done");
});

test("where storing fails, nothing is sent", async () => {
  const faults = [
    { put: async () => Promise.reject(new Error("the disk is full")) },
    { put: async () => {} },
    { get: async () => Promise.reject(new Error("the disk is gone")) },
    { get: async () => "{}" },
    { get: async () => '{"v":1,"attempt":1,"key":"another","state":"open"}' },
  ];
  for (const fault of faults) {
    const fetch = fakeFetch(done);
    await assert.rejects(client(fetch, fakeStore(fault)).payments.charge(CHARGE), StoreFailed);
    assert.equal(fetch.asked.length, 0);
  }
});

test("that the outcome can't be noted changes no outcome", async () => {
  const store = fakeStore();
  const put = store.put;
  let puts = 0;
  store.put = async (name, text) => (++puts > 1 ? Promise.reject(new Error("full")) : put(name, text));
  assert.equal((await client(fakeFetch(done), store).payments.charge(CHARGE)).isDone, true);
});

test("the same call sends the same key, whatever became of it", async () => {
  const store = fakeStore();
  const fetch = fakeFetch(failure(402, "declined", "never"));
  for (let times = 0; times < 3; times += 1) await assert.rejects(client(fetch, store).payments.charge(CHARGE), Declined);
  assert.equal(new Set(keysOf(fetch)).size, 1);
});

test("another attempt after a decline has another key", async () => {
  const store = fakeStore();
  const fetch = fakeFetch(failure(402, "declined", "never"), done);
  const { payments } = client(fetch, store);
  await assert.rejects(payments.charge(CHARGE), Declined);
  await payments.charge(CHARGE, { again: true });
  assert.deepEqual(keysOf(fetch), [`${PLACE}/1`, `${PLACE}/2`]);
});

test("no other attempt while the last one may have charged", async () => {
  for (const state of ["unknown", "pending", "needs_attention", "not_sent", "sending"]) {
    const store = fakeStore();
    const fetch = fakeFetch(nothing, nothing, nothing, nothing, envelope(200, { id: "op_1", state }));
    const { payments } = client(fetch, store);
    assert.equal((await payments.charge(CHARGE)).isDone, false);
    await assert.rejects(payments.charge(CHARGE, { again: true }), (error) => error instanceof AttemptOpen && error.operationId === "op_1");
    assert.equal(recordIn(store).attempt, 1);
  }
});

test("another attempt where the service says that nothing was charged", async () => {
  for (const state of ["declined", "refused", "failed"]) {
    const fetch = fakeFetch(nothing, nothing, nothing, nothing, envelope(200, { id: "op_1", state }), done);
    const { payments } = client(fetch, fakeStore());
    await payments.charge(CHARGE);
    assert.equal((await payments.charge(CHARGE, { again: true })).isDone, true);
    assert.equal(fetch.asked[4].url, `${ADDRESS}/operations/by-key/charge%2Fgateway%2FA%25201%2F1`);
    assert.equal(keysOf(fetch).at(-1), `${PLACE}/2`);
  }
});

test("that nobody knows the key is no proof, unless the service refused the request", async () => {
  const notFound = failure(404, "not_found", "never");
  const lost = client(fakeFetch(nothing, nothing, nothing, nothing, notFound), fakeStore());
  await lost.payments.charge(CHARGE);
  await assert.rejects(lost.payments.charge(CHARGE, { again: true }), AttemptOpen);
  const fetch = fakeFetch(failure(422, "invalid_request", "never"), notFound, done);
  const refused = client(fetch, fakeStore());
  await assert.rejects(refused.payments.charge(CHARGE), InvalidRequest);
  await refused.payments.charge({ ...CHARGE, amount: "1" }, { again: true });
  assert.equal(keysOf(fetch).at(-1), `${PLACE}/2`);
});

test("another attempt at what took effect gives that, and no second one", async () => {
  const store = fakeStore();
  const fetch = fakeFetch(done);
  const { payments } = client(fetch, store);
  await payments.charge(CHARGE);
  await payments.charge(CHARGE, { again: true });
  assert.equal(new Set(keysOf(fetch)).size, 1);
});

test("a store that was emptied gives the same keys again", async () => {
  const fetch = fakeFetch(done);
  await client(fetch, fakeStore()).payments.charge(CHARGE);
  await client(fetch, fakeStore()).payments.charge(CHARGE);
  assert.equal(new Set(keysOf(fetch)).size, 1);
});

test("another request under a key is an error of its own, and leaves the attempt as it is", async () => {
  const store = fakeStore();
  await assert.rejects(client(fakeFetch(failure(422, "idempotency_mismatch", "never")), store).payments.charge(CHARGE), KeyReused);
  assert.deepEqual(recordIn(store), { v: 1, attempt: 1, key: `${PLACE}/1`, state: "open" });
});

test("what has no name of its own must be given one", async () => {
  const fetch = fakeFetch(done);
  const { payments, subscriptions } = client(fetch, fakeStore());
  const capture = { authorization_token: "a", amount: "1", description: "x" };
  await assert.rejects(payments.capture(capture), NameNeeded);
  await assert.rejects(payments.refund({ payment_id: "1", amount: "1", description: "x" }), NameNeeded);
  await assert.rejects(payments.void({ authorization_token: "a", description: "x" }), NameNeeded);
  await assert.rejects(subscriptions.retry("1"), NameNeeded);
  await assert.rejects(payments.charge({ ...CHARGE, order_id: "ව".repeat(100) }), NameNeeded);
  assert.equal(fetch.asked.length, 0);
  await payments.capture(capture, { name: "A 1" });
  await payments.refund({ payment_id: "7", description: "x" });
  await subscriptions.cancel("42");
  assert.deepEqual(keysOf(fetch), ["capture/gateway/A%201/1", "refund/gateway/7/1", "cancel/gateway/42/1"]);
});

test("a key has only characters that a header may have", async () => {
  const fetch = fakeFetch(done);
  const { payments } = client(fetch, fakeStore());
  await payments.charge({ ...CHARGE, order_id: "a'(b)*!/ö~" });
  assert.deepEqual(keysOf(fetch), ["charge/gateway/a%27%28b%29%2A%21%2F%C3%B6~/1"]);
});

test("an amount that can't be sent is found before anything is stored", async () => {
  const store = fakeStore();
  await assert.rejects(client(fakeFetch(done), store).payments.charge({ ...CHARGE, amount: 345.67 }), InvalidAmount);
  assert.equal(store.kept.size, 0);
});

test("a checkout that has ended gives way to another one", async () => {
  const opened = envelope(200, { id: "chk_1", url: "https://x" });
  for (const [state, key] of [["expired", 2], ["cancelled", 2], ["failed", 2], ["open", 1], ["completed", 1], ["notified", 1]]) {
    const fetch = fakeFetch(opened, envelope(200, { id: "chk_1", state }), opened);
    const { checkouts } = client(fetch, fakeStore());
    await checkouts.open({ order_id: "A 1", amount: "1" });
    await checkouts.open({ order_id: "A 1", amount: "1" }, { again: true });
    assert.equal(keysOf(fetch).at(-1), `checkout/gateway/A%201/${key}`, state);
  }
});

test("a folder keeps what was put, across processes and equal names in other letters", async () => {
  const folder = join(await mkdtemp(join(tmpdir(), "keys-")), "made");
  const store = fileStore(folder);
  assert.equal(await store.get("a"), null);
  await Promise.all([store.put("a", "1"), store.put("A", "2"), store.put("a/b", "3")]);
  assert.deepEqual(await Promise.all(["a", "A", "a/b"].map((name) => fileStore(folder).get(name))), ["1", "2", "3"]);
  assert.equal((await readdir(folder)).length, 3);
  await writeFile(join(folder, "other.tmp"), "left by a crash");
  await store.put("a", "4");
  assert.equal(await store.get("a"), "4");
});

test("a folder that can't be written to is an error", async () => {
  const folder = await mkdtemp(join(tmpdir(), "keys-"));
  await writeFile(join(folder, "file"), "");
  await assert.rejects(fileStore(join(folder, "file")).put("a", "1"));
  assert.equal(await readFile(join(folder, "file"), "utf8"), "");
});

test("storages of browsers and phones are stores", async () => {
  const kept = new Map();
  const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => void kept.set(name, text) };
  const phone = { getItem: async (name) => kept.get(name), setItem: async (name, text) => void kept.set(name, text) };
  for (const store of [localStorageStore("p/", storage), asyncStorageStore(phone, "q/")]) {
    assert.equal(await store.get("a"), null);
    await store.put("a", "1");
    assert.equal(await store.get("a"), "1");
  }
  assert.deepEqual([...kept.keys()], ["p/a", "q/a"]);
});
