/** What can go wrong, as types. Each says in `advice` what to do. */

import type { Json } from "./json.js";

/** A field of a request that is wrong. */
export interface FieldError {
  /** Where it is, such as `itemList[0].name`. */
  path: string;
  msg: string;
}

/** What is known of an error beside its message. */
export interface ErrorDetails {
  code?: string;
  httpStatus?: number;
  requestId?: string | null;
  operationId?: string | null;
  checkoutId?: string | null;
  fields?: readonly FieldError[];
  retryAfterS?: number | null;
  data?: Json;
  cause?: unknown;
}

/** Anything that this package throws. Of a call that moves money, it says that this request took no effect. */
export class PayrelayError extends Error {
  /** The service's code, or one of this package's own. */
  readonly code: string;
  /** Of the answer; 0 where there was none. */
  readonly httpStatus: number;
  readonly requestId: string | null;
  readonly operationId: string | null;
  /** The checkout that the error is about, where it is yours. */
  readonly checkoutId: string | null;
  readonly fields: readonly FieldError[];
  /** How many seconds to wait before the same call; null where waiting is not what helps. */
  readonly retryAfterS: number | null;
  /** What the gateway answered, where it did. */
  readonly data: Json;
  /** What to do, in a sentence. */
  readonly advice: string = "See what the message says.";

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code ?? "client";
    this.httpStatus = details.httpStatus ?? 0;
    this.requestId = details.requestId ?? null;
    this.operationId = details.operationId ?? null;
    this.checkoutId = details.checkoutId ?? null;
    this.fields = details.fields ?? [];
    this.retryAfterS = details.retryAfterS ?? null;
    this.data = details.data ?? null;
  }
}

/** The gateway or the bank declined it; no money was charged. */
export class Declined extends PayrelayError {
  override readonly name = "Declined";
  override readonly advice = "Tell the customer. Another attempt is allowed: the same call with again: true.";
}

/** The request is wrong, by the rules of the service or of the gateway. */
export class InvalidRequest extends PayrelayError {
  override readonly name = "InvalidRequest";
  override readonly advice = "Correct the fields that it names. A corrected payment is another attempt: again: true.";
}

/** It is paid, captured, refunded or cancelled already, or can't be any more. */
export class Conflict extends PayrelayError {
  override readonly name = "Conflict";
  override readonly advice = "Look at the payments of the order before anything else. Don't send it again.";
}

/** The service or the gateway can't do it now, and this request changed nothing. */
export class Busy extends PayrelayError {
  override readonly name = "Busy";
  override readonly advice = "Make the same call again later, no sooner than retryAfterS.";
}

/** The credential is missing, unknown, expired or revoked. */
export class Unauthenticated extends PayrelayError {
  override readonly name = "Unauthenticated";
  override readonly advice = "Get another credential, and make the same call again.";
}

/** The credential may not do this. */
export class Forbidden extends PayrelayError {
  override readonly name = "Forbidden";
  override readonly advice = "Use a credential with the scope, the account, the order and the amount of this call.";
}

/** There is nothing of that name or id that the caller may see. */
export class NotFound extends PayrelayError {
  override readonly name = "NotFound";
  override readonly advice = "Check the address and the id.";
}

/** The position in the feed of events was lost with commits of the database. */
export class PositionLost extends PayrelayError {
  override readonly name = "PositionLost";
  override readonly advice = "Read the feed anew from 0, and skip each id that you know.";
}

/** This payment was asked for before, with other values. */
export class KeyReused extends PayrelayError {
  override readonly name = "KeyReused";
  override readonly advice =
    "Make the call with the values of the first time, or look at the operation. Give a second payment a name of its own.";
}

/** The service, its settings or its gateway have a fault. */
export class ServiceFault extends PayrelayError {
  override readonly name = "ServiceFault";
  override readonly advice = "An operator of the service must act. Name the request id.";
}

/** No answer came, or none that can be read, to a call that moves no money. */
export class NoAnswer extends PayrelayError {
  override readonly name = "NoAnswer";
  override readonly advice = "Make the same call again.";
}

/** The key of a payment could not be stored, so nothing was sent. */
export class StoreFailed extends PayrelayError {
  override readonly name = "StoreFailed";
  override readonly advice = "Mend the store, and make the same call again. Nothing was sent.";
}

/** The payment needs a name of its own for its key, so nothing was sent. */
export class NameNeeded extends PayrelayError {
  override readonly name = "NameNeeded";
  override readonly advice = "Give the option name: a short text that is the same after a crash. Nothing was sent.";
}

/** The last attempt may have charged, so that no other one was begun. */
export class AttemptOpen extends PayrelayError {
  override readonly name = "AttemptOpen";
  override readonly advice = "Make the call without again, which asks for the last attempt. Nothing was sent.";
}

/** An amount is no exact decimal, so nothing was sent. */
export class InvalidAmount extends PayrelayError {
  override readonly name = "InvalidAmount";
  override readonly advice = 'Give amounts as texts such as "345.67". Nothing was sent.';
}

/** A webhook is not what the service sent, or came too late. */
export class WebhookRefused extends PayrelayError {
  override readonly name = "WebhookRefused";
  override readonly advice = "Answer 400, and do nothing of what it says.";
}

/** The caller ended the call, by its signal. */
export class Stopped extends PayrelayError {
  override readonly name = "Stopped";
  override readonly advice = "Where isOpen is true the money may have moved: make the same call again to learn of it.";
  /** True where the outcome of a call that moves money isn't known. */
  readonly isOpen: boolean;

  constructor(isOpen: boolean, cause?: unknown) {
    super(isOpen ? "the call was ended, and its outcome isn't known" : "the call was ended", { code: "stopped", cause });
    this.isOpen = isOpen;
  }
}

type ErrorType = new (message: string, details: ErrorDetails) => PayrelayError;

const BY_CODE: Readonly<Record<string, ErrorType>> = {
  declined: Declined,
  malformed_request: InvalidRequest,
  invalid_request: InvalidRequest,
  method_not_allowed: InvalidRequest,
  too_large: InvalidRequest,
  unsupported_media_type: InvalidRequest,
  unauthenticated: Unauthenticated,
  forbidden: Forbidden,
  not_found: NotFound,
  in_progress: Busy,
  conflict: Conflict,
  position_lost: PositionLost,
  idempotency_mismatch: KeyReused,
  rate_limited: Busy,
  internal: ServiceFault,
  not_configured: ServiceFault,
  gateway_refused_us: ServiceFault,
  gateway_bad_reply: ServiceFault,
  gateway_busy: Busy,
  gateway_unreachable: Busy,
  unavailable: Busy,
};

const BY_STATUS: Readonly<Record<number, ErrorType>> = {
  401: Unauthenticated,
  402: Declined,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  410: PositionLost,
  429: Busy,
};

/** Gives the error for a code; one that isn't known goes by its HTTP status, and by whether the same helps later. */
export function errorFor(message: string, details: ErrorDetails & { httpStatus: number; code: string }, retry: string): PayrelayError {
  const fallback = BY_STATUS[details.httpStatus] ?? (details.httpStatus >= 500 ? ServiceFault : InvalidRequest);
  const known = BY_CODE[details.code] ?? (retry === "never" ? fallback : Busy);
  // What isn't shown yet is there, and not for those who take NotFound for "no".
  const type = known === NotFound && retry === "after" ? Busy : known;
  return new type(message, details);
}
