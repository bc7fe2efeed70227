/** Sends a request once, and tells an answer of the service from everything else. */
import { parseJson } from "./json.js";
import { Stopped } from "./errors.js";
/** Ends a request when its time is over or its caller stops it; `end` lets go of both. */
export function timed(timeoutMs, stop) {
    const controller = new AbortController();
    let isTimeOut = false;
    const timer = timeoutMs === null
        ? undefined
        : setTimeout(() => {
            isTimeOut = true;
            controller.abort();
        }, timeoutMs);
    const onStop = () => controller.abort();
    if (stop?.aborted)
        controller.abort();
    stop?.addEventListener("abort", onStop);
    return {
        signal: controller.signal,
        isTimeOut: () => isTimeOut,
        end: () => {
            clearTimeout(timer);
            stop?.removeEventListener("abort", onStop);
        },
    };
}
/** Sends a request once. Throws `Stopped` where the caller ended it meanwhile, and else nothing. */
export async function sendOnce(send, request, timeoutMs, stop) {
    const time = timed(timeoutMs, stop);
    try {
        const { method, url, headers, body } = request;
        const response = await send(url, {
            method,
            headers,
            ...(body === undefined ? {} : { body }),
            signal: time.signal,
            redirect: "manual",
        });
        return readAnswer(response, await response.text());
    }
    catch (error) {
        if (stop?.aborted)
            throw new Stopped(true, stop.reason);
        if (time.isTimeOut())
            return lost("time_out", "no answer came in time");
        return lost("no_answer", messageOf(error));
    }
    finally {
        time.end();
    }
}
/** Tells an answer of the service from everything else that HTTP may bring. */
export function readAnswer(response, text) {
    let envelope;
    try {
        envelope = parseJson(text);
    }
    catch {
        return unreadable(response);
    }
    if (envelope === null || typeof envelope !== "object" || Array.isArray(envelope))
        return unreadable(response);
    const { status, msg, data } = envelope;
    const isEnvelope = Number.isInteger(status) && typeof msg === "string" && data !== undefined;
    const isDone = response.status === 200;
    if (!isEnvelope || isDone !== (status === 1))
        return unreadable(response);
    const failure = isDone ? null : failureOf(envelope.error);
    if (!isDone && failure === null)
        return unreadable(response);
    return { kind: "answer", status: response.status, headers: response.headers, msg, data, failure };
}
/** Gives an answer from one that the service stored: `GET operations/{id}` has it whole. */
export function storedAnswer(httpStatus, body, headers) {
    if (body === null || typeof body !== "object" || Array.isArray(body) || typeof body.msg !== "string")
        return null;
    const failure = httpStatus === 200 ? null : failureOf(body.error);
    if (httpStatus !== 200 && failure === null)
        return null;
    return { kind: "answer", status: httpStatus, headers, msg: body.msg, data: body.data ?? null, failure };
}
function failureOf(value) {
    if (value === null || typeof value !== "object" || Array.isArray(value))
        return null;
    return typeof value.code === "string" && typeof value.retry === "string" ? value : null;
}
function unreadable(response) {
    const message = `an answer with HTTP status ${response.status} came that isn't the service's`;
    return { ...lost("unreadable_answer", message), headers: response.headers };
}
export function lost(reason, message) {
    return { kind: "lost", reason, message, headers: null };
}
export function messageOf(error) {
    if (!(error instanceof Error))
        return String(error);
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
    return `${error.message}${cause}`;
}
