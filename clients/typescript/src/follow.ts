/** Follows an operation until it is final: by waiting, by asking again, or by the stream of its events. */

import { type Caller, newProgress } from "./calls.js";
import { PayrelayError, Stopped } from "./errors.js";
import { type Deadline, pause, pauseS, retryAfterS } from "./pauses.js";
import type { StopSignal } from "./settings.js";
import { openStream } from "./stream.js";
import type { Answer } from "./transport.js";
import type { OperationDetail } from "./types/operations.js";

/** How to learn of changes: by held answers, by asking again, or by server-sent events. */
export type FollowBy = "wait" | "poll" | "stream";

/** An operation as it was read last. */
export interface Seen {
  readonly operation: OperationDetail;
  readonly answer: Answer;
}

const WITH_PERSON: ReadonlySet<string> = new Set(["needs_attention", "held"]);
/** Events after which there is nothing to read yet. */
const NOT_YET = /\.(pending|unknown)$/;

export function isWithPerson(operation: OperationDetail): boolean {
  return WITH_PERSON.has(operation.state);
}

/**
 * Reads an operation until it is final, needs a person, or the time is over; gives it as it was read last.
 *
 * Throws as a read does, `Stopped` among them.
 */
export async function follow(
  caller: Caller,
  id: string,
  by: FollowBy,
  deadline: Deadline,
  stop: StopSignal | undefined,
): Promise<Seen> {
  let isStreamed = by === "stream";
  for (let reads = 1; ; reads += 1) {
    const seen = await read(caller, id, isStreamed || by === "poll", deadline, stop);
    if (seen.operation.is_final || isWithPerson(seen.operation)) return seen;
    if (isStreamed) {
      isStreamed = await heardOfChange(caller, id, deadline, stop);
      if (isStreamed) continue;
    }
    // An answer that was held has waited already.
    const wasHeld = seen.answer.headers.get("Preference-Applied") !== null;
    const seconds = pauseS(caller.limits, wasHeld ? 1 : reads, wasHeld ? null : retryAfterS(seen.answer.headers));
    if (seconds >= deadline.leftS) return seen;
    await pause(seconds, stop, true);
  }
}

async function read(
  caller: Caller,
  id: string,
  isAtOnce: boolean,
  deadline: Deadline,
  stop: StopSignal | undefined,
): Promise<Seen> {
  const waitS = isAtOnce ? 0 : Math.floor(Math.min(caller.limits.waitS, deadline.leftS - 1));
  const headers: Record<string, string> = waitS > 0 ? { Prefer: `wait=${waitS}` } : {};
  const request = await caller.request({ method: "GET", path: `/operations/${encodeURIComponent(id)}`, headers });
  const got = await caller.exchange(request, deadline, newProgress(true), stop);
  if (got.kind === "gave_up") throw caller.errorOf(got.last);
  if (got.failure !== null) throw caller.errorOf(got);
  return { operation: got.data as unknown as OperationDetail, answer: got };
}

/** Waits for an event of the operation; false where it can't be followed by a stream. */
async function heardOfChange(
  caller: Caller,
  id: string,
  deadline: Deadline,
  stop: StopSignal | undefined,
): Promise<boolean> {
  const options = { totalS: Math.max(0, deadline.leftS), ...(stop === undefined ? {} : { signal: stop }) };
  try {
    for await (const event of openStream(caller, `operation:${id}`, options)) {
      if (!NOT_YET.test(event.type)) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof Stopped || !(error instanceof PayrelayError)) throw error;
    return false;
  }
}
