// A service and a store that answer as a test tells them.

/** An envelope of the service's. */
export function envelope(status, data, error = undefined, headers = {}) {
  const body = { status: status === 200 ? 1 : 0, msg: "said", data, ...(error ? { error: { request_id: "req_1", ...error } } : {}) };
  return { status, headers, text: JSON.stringify(body) };
}

export const failure = (status, code, retry, headers) => envelope(status, null, { code, retry }, headers);
export const nothing = { throws: new TypeError("fetch failed") };

/** A fetch that gives these answers one after the other, and notes what it was asked. */
export function fakeFetch(...answers) {
  const asked = [];
  const send = async (url, init) => {
    asked.push({ url, ...init });
    const next = answers.length > 1 ? answers.shift() : answers[0];
    const answer = typeof next === "function" ? await next(asked.at(-1)) : next;
    if (answer.throws) throw answer.throws;
    return new Response(answer.text, { status: answer.status, headers: answer.headers });
  };
  return Object.assign(send, { asked });
}

/** A store in memory, in whose place a test may put its own functions. */
export function fakeStore(changes = {}) {
  const kept = new Map();
  return {
    kept,
    get: async (name) => kept.get(name) ?? null,
    put: async (name, text) => void kept.set(name, text),
    ...changes,
  };
}

export const QUICK = { pauseS: 0.001, pauseMaxS: 0.002, waitS: 0, timeoutS: 1, totalS: 5, tries: 4 };
export const ADDRESS = "http://service.example/gateway/api";
export const CHARGE = { type: "PAYMENT", order_id: "A 1", items: "Taxi", currency: "LKR", amount: "345.67", customer_token: "cus_1" };
export const CHARGED = { order_id: "A 1", currency: "LKR", amount: 345.67, payment_id: 320025021815, status_code: 2 };
