// Makes one call with the built package, as clients/conformance/README.md tells: one step on standard input, its result on standard output.
import { text } from "node:stream/consumers";

import { Payrelay, PayrelayError } from "payrelay-client";
import { fileStore } from "payrelay-client/node";
import { verifyWebhook } from "payrelay-client/webhooks";

const step = JSON.parse(await text(process.stdin));
const waits = [];
let puts = 0;

function faulty(store, fault) {
  return {
    get: (name) => store.get(name),
    async put(name, value) {
      puts += 1;
      const strikes = fault?.put === puts ? fault.do : null;
      if (strikes === "fail") throw new Error("the disk is full");
      if (strikes === "kill_before") await die();
      await store.put(name, value);
      if (strikes === "kill_after") await die();
    },
  };
}

function die() {
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => setInterval(() => {}, 1000));
}

const credentials = [...step.credentials];

function credential() {
  const given = credentials.shift();
  if (given === null || given === undefined) throw new Error("the shop gives no credential");
  return given;
}

const client = new Payrelay({
  ...step.settings,
  address: step.address,
  credential: credentials.length === 1 ? credentials[0] : credential,
  store: step.store === null ? null : faulty(fileStore(step.store), step.storeFault),
  onWait: ({ reason, seconds }) => waits.push({ reason, seconds }),
});

const { orders, payments, subscriptions, checkouts, operations, clientTokens } = client;
const options = step.options ?? {};
const data = (value) => ({ isDone: true, data: value, operationId: null, isReplay: false });
const reading = ({ data: shown, missing }) => ({ ...data(shown), more: { missing } });
const calls = {
  charge: (body) => payments.charge(body, options),
  capture: (body) => payments.capture(body, options),
  refund: (body) => payments.refund(body, options),
  void: (body) => payments.void(body, options),
  retry: ({ subscription_id }) => subscriptions.retry(subscription_id, options),
  cancel: ({ subscription_id }) => subscriptions.cancel(subscription_id, options),
  open_checkout: async (body) => data(await checkouts.open(body, options)),
  close_checkout: async ({ id }) => data(await checkouts.close(id)),
  show_checkout: async ({ id }) => data(await checkouts.show(id)),
  show_order: async ({ order_id }) => data(await orders.show(order_id)),
  payments_of_order: async ({ order_id }) => reading(await payments.ofOrder(order_id)),
  list_operations: async (filter) => data((await operations.list(filter).all()).map((each) => each.id)),
  show_operation_by_key: async ({ key }) => data(await operations.byKey(key)),
  follow: async ({ operation_id, by }) => data(await operations.follow(operation_id, { by })),
  issue_client_token: async (body) => data(await clientTokens.issue(body)),
  verify_webhook: async ({ secret, headers, body }) => data(await verifyWebhook(secret, headers, body)),
};

async function result() {
  try {
    const outcome = await calls[step.call](step.with);
    if (outcome.isDone) {
      const { data, operationId, isReplay, more } = outcome;
      return { result: "done", data, operation_id: operationId, is_replay: isReplay, ...more };
    }
    const { reason, operationId, isWithPerson } = outcome;
    return { result: "open", reason, operation_id: operationId, is_with_person: isWithPerson };
  } catch (error) {
    if (!(error instanceof PayrelayError)) throw error;
    const { name: type, code, message, retryAfterS, operationId } = error;
    return { result: "error", type, code, message, retry_after_s: retryAfterS, operation_id: operationId };
  }
}

console.log(JSON.stringify({ ...(await result()), puts, waits }));
