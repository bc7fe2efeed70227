/** Amounts as exact decimals: texts and whole hundredths, never a binary floating-point number. */
import { InvalidAmount } from "./errors.js";
const DECIMAL = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?$/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/;
/**
 * Checks an amount that is about to be sent, and gives it as it stands in the request.
 *
 * @throws {InvalidAmount} for a number, for a text that is no decimal, and for more than two decimals by value.
 */
export function checkedAmount(value, member) {
    if (typeof value !== "string") {
        throw new InvalidAmount(`${member} must be a text such as "345.67": a ${typeof value} may not be exact`);
    }
    const parts = DECIMAL.exec(value);
    if (parts === null)
        throw new InvalidAmount(`${member} must be a decimal such as "345.67", and is ${JSON.stringify(value)}`);
    const decimals = (parts[3] ?? "").replace(/0+$/, "");
    if (decimals.length > 2)
        throw new InvalidAmount(`${member} has more than two decimals: ${value}`);
    return `${parts[1]}${parts[2]}${decimals === "" ? "" : `.${decimals}`}`;
}
/** Gives a number of an answer as a decimal with all its digits, and with no fewer than `decimalsMin` decimals. */
export function exactText(number, decimalsMin) {
    const parts = NUMBER.exec(number);
    if (parts === null)
        return number;
    const exponent = Number(parts[4] ?? "0");
    let whole = parts[2] ?? "0";
    let fraction = parts[3] ?? "";
    if (exponent > 0) {
        const padded = fraction.padEnd(exponent, "0");
        whole += padded.slice(0, exponent);
        fraction = padded.slice(exponent);
    }
    else if (exponent < 0) {
        const padded = whole.padStart(1 - exponent, "0");
        fraction = padded.slice(exponent) + fraction;
        whole = padded.slice(0, exponent);
    }
    whole = whole.replace(/^0+(?=\d)/, "");
    fraction = fraction.replace(/0+$/, "").padEnd(decimalsMin, "0");
    return `${parts[1]}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}
/**
 * Gives an amount in whole hundredths: 34567n for `"345.67"`.
 *
 * @throws {InvalidAmount} for a text that is no decimal, and for more than two decimals by value.
 */
export function minorUnits(amount) {
    const [whole = "0", fraction = ""] = checkedAmount(amount, "the amount").replace("-", "").split(".");
    const units = BigInt(whole) * 100n + BigInt(fraction.padEnd(2, "0"));
    return amount.startsWith("-") ? -units : units;
}
/** Gives an amount from whole hundredths: `"345.67"` for 34567n. */
export function amountOf(units) {
    const digits = (units < 0n ? -units : units).toString().padStart(3, "0");
    return `${units < 0n ? "-" : ""}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
