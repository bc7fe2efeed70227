/** Checks that a webhook is the service's, as Standard Webhooks defines it, and reads its event. */

import { WebhookRefused } from "./errors.js";
import { parseJson } from "./json.js";
import type { WebhookEvent } from "./types/events.js";

/** The headers of a request: a `Headers`, or what Node and most frameworks give. */
export type WebhookHeaders =
  | Pick<Headers, "get">
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** What a check may be told. */
export interface WebhookOptions {
  /** How far the time of the webhook may be from now, in seconds (300). */
  toleranceS?: number;
  /** The time to compare with. */
  now?: Date;
}

const TOLERANCE_S = 300;
const PREFIX = "whsec_";
const VERSION = "v1";
const WHOLE_NUMBER = /^\d{1,12}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * Gives the event of a webhook whose signature and time are right.
 *
 * @param secret of the endpoint, `whsec_…`; two of them while it is changed.
 * @param body as it came, byte for byte: not parsed and written again.
 * @throws {WebhookRefused} for everything else. {TypeError} for a secret that is none.
 */
export async function verifyWebhook(
  secret: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array,
  options: WebhookOptions = {},
): Promise<WebhookEvent> {
  const secrets = (typeof secret === "string" ? [secret] : secret).map(secretBytes);
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  requireTime(timestamp, options);
  const text = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + text.length);
  signed.set(head);
  signed.set(text, head.length);
  if (!(await isSignedByOne(secrets, signatures, signed))) throw refused("the signature is wrong");
  return eventIn(text);
}

async function isSignedByOne(
  secrets: readonly Uint8Array<ArrayBuffer>[],
  signatures: string,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const { subtle } = await webCrypto();
  const given = signatures
    .split(" ")
    .map((each) => each.split(","))
    .filter(([version, value]) => version === VERSION && value !== undefined && BASE64.test(value))
    .map(([, value]) => bytesOf(value ?? ""));
  for (const secret of secrets) {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await subtle.importKey("raw", secret, algorithm, false, ["sign"]);
    // Once a secret, however many signatures somebody names: the body may be long.
    const right = new Uint8Array(await subtle.sign("HMAC", key, signed));
    if (given.some((signature) => isEqual(signature, right))) return true;
  }
  return false;
}

/** Compares in a time that tells nothing of the right one. */
function isEqual(given: Uint8Array, right: Uint8Array): boolean {
  return given.length === right.length && right.reduce((odd, byte, at) => odd | (byte ^ (given[at] ?? 0)), 0) === 0;
}

function requireTime(timestamp: string, { toleranceS = TOLERANCE_S, now = new Date() }: WebhookOptions): void {
  if (!WHOLE_NUMBER.test(timestamp)) throw refused("webhook-timestamp is no time");
  const awayS = Number(timestamp) - now.getTime() / 1000;
  if (awayS < -toleranceS) throw refused("it is too old");
  if (awayS > toleranceS) throw refused("its time is in the future");
}

function eventIn(text: Uint8Array): WebhookEvent {
  try {
    const event = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(text)) as unknown as WebhookEvent;
    if (typeof event.id === "string" && typeof event.type === "string") return event;
  } catch {
    // it is signed, and still no event
  }
  throw refused("the body is no event");
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (text === "" || !BASE64.test(text)) throw new TypeError("the secret must be the endpoint's: whsec_ and base64");
  return bytesOf(text);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function header(headers: WebhookHeaders, name: string): string {
  const value = isHeaders(headers) ? headers.get(name) : namedOnce(headers, name);
  if (value === null || value === "") throw refused(`${name} is missing`);
  return value;
}

function isHeaders(headers: WebhookHeaders): headers is Pick<Headers, "get"> {
  return typeof headers.get === "function";
}

function namedOnce(headers: Readonly<Record<string, string | readonly string[] | undefined>>, name: string): string | null {
  const values = Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
  return values.length === 1 ? (values[0] ?? null) : null;
}

async function webCrypto(): Promise<Pick<Crypto, "subtle">> {
  if (globalThis.crypto?.subtle !== undefined) return globalThis.crypto;
  // Node 18 has it only here.
  return (await import("node:crypto")).webcrypto as unknown as Pick<Crypto, "subtle">;
}

function refused(message: string): WebhookRefused {
  return new WebhookRefused(message, { code: "webhook_refused" });
}
