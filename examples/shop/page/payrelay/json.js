/** JSON in which no digit is lost: amounts and long numbers stay texts on the way in, and are numbers on the way out. */
import { InvalidAmount } from "./errors.js";
import { checkedAmount, exactText } from "./money.js";
const AMOUNTS = new Set([
    "amount", "captured_amount", "amount_max", "startup_fee", "unit_amount",
    "gross", "fee", "net", "unit_price", "total_price",
    "paid", "held", "given_back", "charged_back", "left",
]);
const TEXTS = new Set(["payment_id", "subscription_id", "exchange_rate"]);
/** Where the whole of `data` is a number, it is the gateway's number of a refund. */
const NUMBERED = "data";
const OPEN = "open";
/** A text as a whole, or a number: what stands between two texts can't be taken for one. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/**
 * Reads JSON. Amounts, ids and numbers that JavaScript can't hold exactly become texts with their digits.
 *
 * @throws {SyntaxError} where the text is not JSON.
 */
export function parseJson(text) {
    JSON.parse(text);
    // Each text and each number gets a letter in front, so that both can be read as texts and told apart.
    const marked = text.replace(TOKEN, (token) => (token.startsWith('"') ? `"s${token.slice(1)}` : `"n${token}"`));
    return unmarked(JSON.parse(marked), "");
}
function unmarked(value, member) {
    if (typeof value === "string")
        return value.startsWith("s") ? value.slice(1) : numberOf(value.slice(1), member);
    if (Array.isArray(value))
        return value.map((each) => unmarked(each, member));
    if (value === null || typeof value !== "object")
        return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.slice(1), unmarked(each, name.slice(1))]));
}
function numberOf(digits, member) {
    if (AMOUNTS.has(member))
        return exactText(digits, 2);
    if (TEXTS.has(member) || member === NUMBERED)
        return exactText(digits, 0);
    const number = Number(digits);
    return Number.isSafeInteger(number) && exactText(digits, 0) === String(number) ? number : exactText(digits, 0);
}
/**
 * Writes the body of a request: amounts, which are texts, as numbers with their digits; members that are undefined not at all.
 *
 * @throws {InvalidAmount} for an amount that is no exact decimal, and for another number that is no whole one.
 */
export function writeJson(value, member = "") {
    if (AMOUNTS.has(member) && value !== null && value !== OPEN)
        return checkedAmount(value, member);
    if (Array.isArray(value))
        return `[${value.map((each) => writeJson(each, member)).join(",")}]`;
    if (value !== null && typeof value === "object") {
        const members = Object.entries(value).filter(([, each]) => each !== undefined);
        return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${writeJson(each, name)}`).join(",")}}`;
    }
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
        throw new InvalidAmount(`${member} must be a whole number, and is ${value}`);
    }
    if (typeof value === "bigint")
        return value.toString();
    const text = JSON.stringify(value);
    if (text === undefined)
        throw new TypeError(`${member} can't be written as JSON`);
    return text;
}
