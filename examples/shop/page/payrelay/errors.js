/** What can go wrong, as types. Each says in `advice` what to do. */
/** Anything that this package throws. Of a call that moves money, it says that this request took no effect. */
export class PayrelayError extends Error {
    /** The service's code, or one of this package's own. */
    code;
    /** Of the answer; 0 where there was none. */
    httpStatus;
    requestId;
    operationId;
    /** The checkout that the error is about, where it is yours. */
    checkoutId;
    fields;
    /** How many seconds to wait before the same call; null where waiting is not what helps. */
    retryAfterS;
    /** What the gateway answered, where it did. */
    data;
    /** What to do, in a sentence. */
    advice = "See what the message says.";
    constructor(message, details = {}) {
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
    name = "Declined";
    advice = "Tell the customer. Another attempt is allowed: the same call with again: true.";
}
/** The request is wrong, by the rules of the service or of the gateway. */
export class InvalidRequest extends PayrelayError {
    name = "InvalidRequest";
    advice = "Correct the fields that it names. A corrected payment is another attempt: again: true.";
}
/** It is paid, captured, refunded or cancelled already, or can't be any more. */
export class Conflict extends PayrelayError {
    name = "Conflict";
    advice = "Look at the payments of the order before anything else. Don't send it again.";
}
/** The service or the gateway can't do it now, and this request changed nothing. */
export class Busy extends PayrelayError {
    name = "Busy";
    advice = "Make the same call again later, no sooner than retryAfterS.";
}
/** The credential is missing, unknown, expired or revoked. */
export class Unauthenticated extends PayrelayError {
    name = "Unauthenticated";
    advice = "Get another credential, and make the same call again.";
}
/** The credential may not do this. */
export class Forbidden extends PayrelayError {
    name = "Forbidden";
    advice = "Use a credential with the scope, the account, the order and the amount of this call.";
}
/** There is nothing of that name or id that the caller may see. */
export class NotFound extends PayrelayError {
    name = "NotFound";
    advice = "Check the address and the id.";
}
/** The position in the feed of events was lost with commits of the database. */
export class PositionLost extends PayrelayError {
    name = "PositionLost";
    advice = "Read the feed anew from 0, and skip each id that you know.";
}
/** This payment was asked for before, with other values. */
export class KeyReused extends PayrelayError {
    name = "KeyReused";
    advice = "Make the call with the values of the first time, or look at the operation. Give a second payment a name of its own.";
}
/** The service, its settings or its gateway have a fault. */
export class ServiceFault extends PayrelayError {
    name = "ServiceFault";
    advice = "An operator of the service must act. Name the request id.";
}
/** No answer came, or none that can be read, to a call that moves no money. */
export class NoAnswer extends PayrelayError {
    name = "NoAnswer";
    advice = "Make the same call again.";
}
/** The key of a payment could not be stored, so nothing was sent. */
export class StoreFailed extends PayrelayError {
    name = "StoreFailed";
    advice = "Mend the store, and make the same call again. Nothing was sent.";
}
/** The payment needs a name of its own for its key, so nothing was sent. */
export class NameNeeded extends PayrelayError {
    name = "NameNeeded";
    advice = "Give the option name: a short text that is the same after a crash. Nothing was sent.";
}
/** The last attempt may have charged, so that no other one was begun. */
export class AttemptOpen extends PayrelayError {
    name = "AttemptOpen";
    advice = "Make the call without again, which asks for the last attempt. Nothing was sent.";
}
/** An amount is no exact decimal, so nothing was sent. */
export class InvalidAmount extends PayrelayError {
    name = "InvalidAmount";
    advice = 'Give amounts as texts such as "345.67". Nothing was sent.';
}
/** A webhook is not what the service sent, or came too late. */
export class WebhookRefused extends PayrelayError {
    name = "WebhookRefused";
    advice = "Answer 400, and do nothing of what it says.";
}
/** The caller ended the call, by its signal. */
export class Stopped extends PayrelayError {
    name = "Stopped";
    advice = "Where isOpen is true the money may have moved: make the same call again to learn of it.";
    /** True where the outcome of a call that moves money isn't known. */
    isOpen;
    constructor(isOpen, cause) {
        super(isOpen ? "the call was ended, and its outcome isn't known" : "the call was ended", { code: "stopped", cause });
        this.isOpen = isOpen;
    }
}
const BY_CODE = {
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
const BY_STATUS = {
    401: Unauthenticated,
    402: Declined,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: PositionLost,
    429: Busy,
};
/** Gives the error for a code; one that isn't known goes by its HTTP status, and by whether the same helps later. */
export function errorFor(message, details, retry) {
    const fallback = BY_STATUS[details.httpStatus] ?? (details.httpStatus >= 500 ? ServiceFault : InvalidRequest);
    const known = BY_CODE[details.code] ?? (retry === "never" ? fallback : Busy);
    // What isn't shown yet is there, and not for those who take NotFound for "no".
    const type = known === NotFound && retry === "after" ? Busy : known;
    return new type(message, details);
}
