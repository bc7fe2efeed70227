import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidAmount } from "payrelay-client";
import { parseJson, writeJson } from "../dist/json.js";
import { amountOf, minorUnits } from "../dist/money.js";

test("an amount keeps its digits, and has two decimals", () => {
  const read = parseJson('{"amount": 1000, "captured_amount": 1000.0, "gross": 345.670, "net": 0.1, "fee": 1e3}');
  assert.deepEqual(read, { amount: "1000.00", captured_amount: "1000.00", gross: "345.67", net: "0.10", fee: "1000.00" });
});

test("an id of nineteen digits is whole", () => {
  assert.deepEqual(parseJson('{"payment_id": 9223372036854775807, "data": 9007199254740993}'), {
    payment_id: "9223372036854775807",
    data: "9007199254740993",
  });
});

test("a number that JavaScript can't hold is its text, and others are numbers", () => {
  assert.deepEqual(parseJson('[1, -7, 1.5, 9007199254740993, 1.0]'), [1, -7, "1.5", "9007199254740993", 1]);
  assert.deepEqual(parseJson('{"exchange_rate": 0.00301000}'), { exchange_rate: "0.00301" });
});

test("texts are never taken for numbers, whatever is in them", () => {
  const value = { amount: "345.67", "n1": "n1", s: 's"12\\', "1": ["\\\"3\"", "n5", "", null, true, {}] };
  assert.deepEqual(parseJson(JSON.stringify(value)), value);
});

test("a member called __proto__ is a member", () => {
  const read = parseJson('{"__proto__": {"amount": 1}}');
  assert.equal(Object.getPrototypeOf(read), Object.prototype);
  assert.deepEqual(Object.keys(read), ["__proto__"]);
});

test("what is no JSON is refused", () => {
  for (const text of ["", "{", "01", "1 2", "{'a': 1}", "<html>", '{"a": 1}x', '{"a": .5}']) {
    assert.throws(() => parseJson(text), SyntaxError, text);
  }
});

test("an amount is written as a number with its digits", () => {
  assert.equal(writeJson({ amount: "345.67", label: undefined, n: 2 }), '{"amount":345.67,"n":2}');
  assert.equal(writeJson({ amount: "1000.00" }), '{"amount":1000}');
  assert.equal(writeJson({ amount: "999999999999.99" }), '{"amount":999999999999.99}');
  assert.equal(writeJson({ itemList: [{ unit_amount: "0.10" }], startup_fee: "-5.50" }), '{"itemList":[{"unit_amount":0.1}],"startup_fee":-5.5}');
  assert.equal(writeJson({ amount: "open" }), '{"amount":"open"}');
});

test("an amount that may not be exact is never sent", () => {
  for (const amount of [345.67, 1, 1n, "1e3", "1,000", "007", "", " 1", "1.005", ".5", "NaN", "٣", true, {}]) {
    assert.throws(() => writeJson({ amount }), InvalidAmount, String(amount));
  }
  assert.throws(() => writeJson({ quantity: 1.5 }), InvalidAmount);
});

test("hundredths and amounts lead to each other", () => {
  for (const [amount, units] of [["345.67", 34567n], ["0.05", 5n], ["-5.50", -550n], ["999999999999.99", 99999999999999n]]) {
    assert.equal(minorUnits(amount), units);
    assert.equal(amountOf(units), amount);
  }
  assert.equal(minorUnits("1000"), 100000n);
});
