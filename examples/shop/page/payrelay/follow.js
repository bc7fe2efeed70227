/** Follows an operation until it is final: by waiting, by asking again, or by the stream of its events. */
import { newProgress } from "./calls.js";
import { PayrelayError, Stopped } from "./errors.js";
import { pause, pauseS, retryAfterS } from "./pauses.js";
import { openStream } from "./stream.js";
const WITH_PERSON = new Set(["needs_attention", "held"]);
/** Events after which there is nothing to read yet. */
const NOT_YET = /\.(pending|unknown)$/;
export function isWithPerson(operation) {
    return WITH_PERSON.has(operation.state);
}
/**
 * Reads an operation until it is final, needs a person, or the time is over; gives it as it was read last.
 *
 * Throws as a read does, `Stopped` among them.
 */
export async function follow(caller, id, by, deadline, stop) {
    let isStreamed = by === "stream";
    for (let reads = 1;; reads += 1) {
        const seen = await read(caller, id, isStreamed || by === "poll", deadline, stop);
        if (seen.operation.is_final || isWithPerson(seen.operation))
            return seen;
        if (isStreamed) {
            isStreamed = await heardOfChange(caller, id, deadline, stop);
            if (isStreamed)
                continue;
        }
        // An answer that was held has waited already.
        const wasHeld = seen.answer.headers.get("Preference-Applied") !== null;
        const seconds = pauseS(caller.limits, wasHeld ? 1 : reads, wasHeld ? null : retryAfterS(seen.answer.headers));
        if (seconds >= deadline.leftS)
            return seen;
        await pause(seconds, stop, true);
    }
}
async function read(caller, id, isAtOnce, deadline, stop) {
    const waitS = isAtOnce ? 0 : Math.floor(Math.min(caller.limits.waitS, deadline.leftS - 1));
    const headers = waitS > 0 ? { Prefer: `wait=${waitS}` } : {};
    const request = await caller.request({ method: "GET", path: `/operations/${encodeURIComponent(id)}`, headers });
    const got = await caller.exchange(request, deadline, newProgress(true), stop);
    if (got.kind === "gave_up")
        throw caller.errorOf(got.last);
    if (got.failure !== null)
        throw caller.errorOf(got);
    return { operation: got.data, answer: got };
}
/** Waits for an event of the operation; false where it can't be followed by a stream. */
async function heardOfChange(caller, id, deadline, stop) {
    const options = { totalS: Math.max(0, deadline.leftS), ...(stop === undefined ? {} : { signal: stop }) };
    try {
        for await (const event of openStream(caller, `operation:${id}`, options)) {
            if (!NOT_YET.test(event.type))
                return true;
        }
        return false;
    }
    catch (error) {
        if (error instanceof Stopped || !(error instanceof PayrelayError))
            throw error;
        return false;
    }
}
