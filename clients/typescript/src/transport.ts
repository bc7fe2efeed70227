/** Sends a request once, and tells an answer of the service from everything else. */

import { type Json, parseJson } from "./json.js";
import { Stopped } from "./errors.js";
import type { StopSignal } from "./settings.js";

/** A request as it is sent, again and again with the same bytes. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** An error of the service's, as its envelope has it. */
export interface Failure {
  readonly code: string;
  readonly retry: string;
  readonly request_id?: string;
  readonly operation_id?: string;
  readonly checkout_id?: string;
  readonly fields?: { path: string; msg: string }[];
}

/** The service answered. */
export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  readonly headers: Pick<Headers, "get">;
  readonly msg: string;
  readonly data: Json;
  /** Present with every status but 200. */
  readonly failure: Failure | null;
}

/** No answer that can be believed: the service may have acted or not. */
export interface Lost {
  readonly kind: "lost";
  readonly reason: "no_answer" | "time_out" | "unreadable_answer" | "no_credential";
  readonly message: string;
  readonly headers: Pick<Headers, "get"> | null;
}

/** What `fetch` is given of a signal, and the end of its time. */
interface Timed {
  readonly signal: AbortSignal;
  readonly isTimeOut: () => boolean;
  readonly end: () => void;
}

/** Ends a request when its time is over or its caller stops it; `end` lets go of both. */
export function timed(timeoutMs: number | null, stop: StopSignal | undefined): Timed {
  const controller = new AbortController();
  let isTimeOut = false;
  const timer =
    timeoutMs === null
      ? undefined
      : setTimeout(() => {
          isTimeOut = true;
          controller.abort();
        }, timeoutMs);
  const onStop = () => controller.abort();
  if (stop?.aborted) controller.abort();
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
export async function sendOnce(
  send: typeof fetch,
  request: Sent,
  timeoutMs: number,
  stop: StopSignal | undefined,
): Promise<Answer | Lost> {
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
  } catch (error) {
    if (stop?.aborted) throw new Stopped(true, stop.reason);
    if (time.isTimeOut()) return lost("time_out", "no answer came in time");
    return lost("no_answer", messageOf(error));
  } finally {
    time.end();
  }
}

/** Tells an answer of the service from everything else that HTTP may bring. */
export function readAnswer(response: Response, text: string): Answer | Lost {
  let envelope: Json;
  try {
    envelope = parseJson(text);
  } catch {
    return unreadable(response);
  }
  if (envelope === null || typeof envelope !== "object" || Array.isArray(envelope)) return unreadable(response);
  const { status, msg, data } = envelope;
  const isEnvelope = Number.isInteger(status) && typeof msg === "string" && data !== undefined;
  const isDone = response.status === 200;
  if (!isEnvelope || isDone !== (status === 1)) return unreadable(response);
  const failure = isDone ? null : failureOf(envelope.error);
  if (!isDone && failure === null) return unreadable(response);
  return { kind: "answer", status: response.status, headers: response.headers, msg, data, failure };
}

/** Gives an answer from one that the service stored: `GET operations/{id}` has it whole. */
export function storedAnswer(httpStatus: number, body: Json, headers: Pick<Headers, "get">): Answer | null {
  if (body === null || typeof body !== "object" || Array.isArray(body) || typeof body.msg !== "string") return null;
  const failure = httpStatus === 200 ? null : failureOf(body.error);
  if (httpStatus !== 200 && failure === null) return null;
  return { kind: "answer", status: httpStatus, headers, msg: body.msg, data: body.data ?? null, failure };
}

function failureOf(value: Json | undefined): Failure | null {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  return typeof value.code === "string" && typeof value.retry === "string" ? (value as unknown as Failure) : null;
}

function unreadable(response: Response): Lost {
  const message = `an answer with HTTP status ${response.status} came that isn't the service's`;
  return { ...lost("unreadable_answer", message), headers: response.headers };
}

export function lost(reason: Lost["reason"], message: string): Lost {
  return { kind: "lost", reason, message, headers: null };
}

export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error.message}${cause}`;
}
