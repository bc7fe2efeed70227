/** The one retry rule: which answer ends a call, and when the same request goes again. */

import { errorFor, NoAnswer, type PayrelayError, Stopped } from "./errors.js";
import { writeJson } from "./json.js";
import { Deadline, pause, pauseS, retryAfterS } from "./pauses.js";
import { type CallOptions, type Limits, limitsOf, type Settings, type StopSignal } from "./settings.js";
import { type Answer, lost, type Lost, messageOf, sendOnce, type Sent } from "./transport.js";

/** A call before it is a request. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below the account's address, with its segments encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** True where the service would carry the call out a second time: it goes again only where the service says so. */
  readonly isOnce?: boolean;
}

/** How far the sending of one request has come. */
export interface Progress {
  tries: number;
  /** True where an earlier send may have taken effect. */
  isInDoubt: boolean;
  isRefreshed: boolean;
}

/** The limits are reached, or, in doubt, an answer came that says nothing of an earlier send. */
export interface GaveUp {
  readonly kind: "gave_up";
  readonly last: Answer | Lost;
}

/** Codes which say that this request changed nothing. */
const UNCHANGED = new Set(["rate_limited", "gateway_busy", "gateway_unreachable", "gateway_refused_us", "unavailable"]);
/** HTTP statuses that speak of the payment itself, and so end a call that is in doubt. */
const TELLING = new Set([402, 409, 422]);
/** HTTP statuses with which the service says that it did nothing of a call. */
const NOT_DONE = new Set([409, 429, 503]);

export function newProgress(isInDoubt = false): Progress {
  return { tries: 0, isInDoubt, isRefreshed: false };
}

/** Sends calls to one account, by the settings of its client. */
export class Caller {
  readonly limits: Limits;
  readonly account: string;
  private readonly base: string;
  private readonly fetch: typeof fetch;
  private credential: Promise<string> | null = null;

  constructor(private readonly settings: Settings) {
    this.limits = limitsOf(settings);
    this.base = settings.address.replace(/\/+$/, "");
    const parts = /^https?:\/\/[^/?#]+\/(?:[^?#]*\/)?([^/?#]+)\/api$/.exec(this.base);
    if (parts?.[1] === undefined) {
      throw new TypeError(`the address must be like https://pay.example.com/gateway/api, and is ${settings.address}`);
    }
    this.account = parts[1];
    const given = settings.fetch ?? globalThis.fetch;
    if (given === undefined) throw new TypeError("there is no fetch here: give one in the settings");
    this.fetch = (input, init) => given(input, init);
  }

  deadline(options: CallOptions | undefined): Deadline {
    return new Deadline(options?.totalS ?? this.limits.totalS);
  }

  /** Makes a call that moves no money, and gives its answer, which is 200. Throws what its error says. */
  async ask(call: Call, options: CallOptions = {}, deadline = this.deadline(options)): Promise<Answer> {
    const got = await this.exchange(await this.request(call), deadline, newProgress(), options.signal, call.isOnce);
    if (got.kind === "answer" && got.failure === null) return got;
    throw this.errorOf(got.kind === "gave_up" ? got.last : got);
  }

  /** Makes the request of a call; its body and its address stay the same however often it is sent. */
  async request(call: Call, more: Readonly<Record<string, string>> = {}): Promise<Sent> {
    const body = call.body === undefined ? undefined : writeJson(call.body);
    return {
      method: call.method,
      url: `${this.base}${call.path}${queryText(call.query)}`,
      headers: {
        ...call.headers,
        ...more,
        Accept: "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(body === undefined ? {} : { body }),
    };
  }

  /** Sends a request until an answer ends it, or the limits are reached. */
  async exchange(
    request: Sent,
    deadline: Deadline,
    progress: Progress,
    stop: StopSignal | undefined,
    isOnce = false,
  ): Promise<Answer | GaveUp> {
    for (;;) {
      const got = await this.send(request, deadline, progress, stop);
      progress.tries += 1;
      const failure = got.kind === "answer" ? got.failure : null;
      if (got.kind === "answer" && (failure === null || got.status === 202)) return got;
      if (failure?.code === "unauthenticated" && this.canRefresh && !progress.isRefreshed) {
        progress.isRefreshed = true;
        this.credential = null;
        continue;
      }
      if (got.kind === "answer" && failure?.retry === "never") {
        return progress.isInDoubt && !TELLING.has(got.status) ? { kind: "gave_up", last: got } : got;
      }
      if (failure === null || !UNCHANGED.has(failure.code)) progress.isInDoubt = true;
      const saysAgain = got.kind === "answer" && failure?.retry === "after" && NOT_DONE.has(got.status);
      const isOver = progress.tries >= this.limits.tries || (isOnce && !saysAgain);
      if (isOver || !(await this.waited(got, deadline, progress, stop))) return { kind: "gave_up", last: got };
    }
  }

  /** Pauses before the next try, and says why; false at once where the pause would end after the call's time. */
  async waited(
    got: Answer | Lost,
    deadline: Deadline,
    progress: Progress,
    stop: StopSignal | undefined,
    atLeastS = retryAfterS(got.headers),
  ): Promise<boolean> {
    const seconds = pauseS(this.limits, progress.tries, atLeastS);
    if (seconds >= deadline.leftS) return false;
    const reason = got.kind === "lost" ? got.reason : (got.failure?.code ?? "not_final");
    this.tell({ reason, seconds, tries: progress.tries, requestId: requestIdOf(got), operationId: operationIdOf(got) });
    await pause(seconds, stop, progress.isInDoubt);
    return true;
  }

  /** Gives what to throw for an answer that is an error, or for none. */
  errorOf(got: Answer | Lost): PayrelayError {
    const after = retryAfterS(got.headers);
    if (got.kind === "lost" || got.failure === null) {
      const message = got.kind === "lost" ? got.message : got.msg;
      return new NoAnswer(message, { code: "no_answer", retryAfterS: after });
    }
    const { code, retry, checkout_id, fields } = got.failure;
    const details = {
      code,
      httpStatus: got.status,
      requestId: requestIdOf(got),
      operationId: operationIdOf(got),
      checkoutId: checkout_id ?? null,
      fields: fields ?? [],
      retryAfterS: after,
      data: got.data,
    };
    return errorFor(got.msg, details, retry);
  }

  /** Sends a request whose answer is read by the caller, such as a stream. */
  async open(call: Call, signal: AbortSignal, more: Readonly<Record<string, string>>): Promise<Response> {
    const request = await this.request(call);
    const headers = { ...request.headers, ...more, Authorization: `Bearer ${await this.token()}` };
    return this.fetch(request.url, { method: request.method, headers, signal });
  }

  /** Asks for another credential at the next request, where there is a function that gives one. */
  refresh(): boolean {
    this.credential = null;
    return this.canRefresh;
  }

  private get canRefresh(): boolean {
    return typeof this.settings.credential === "function";
  }

  private async send(
    request: Sent,
    deadline: Deadline,
    progress: Progress,
    stop: StopSignal | undefined,
  ): Promise<Answer | Lost> {
    if (stop?.aborted) throw new Stopped(progress.isInDoubt, stop.reason);
    let token: string;
    try {
      token = await this.token();
    } catch (error) {
      // An error would say that nothing was done, and an earlier send may have been carried out.
      if (progress.isInDoubt) return lost("no_credential", messageOf(error));
      throw error;
    }
    const headers = { ...request.headers, Authorization: `Bearer ${token}` };
    const timeoutMs = Math.max(1, Math.min(this.limits.timeoutS, deadline.leftS) * 1000);
    return sendOnce(this.fetch, { ...request, headers }, timeoutMs, stop);
  }

  private token(): Promise<string> {
    const { credential } = this.settings;
    if (this.credential === null) {
      const asked = Promise.resolve(typeof credential === "function" ? credential() : credential);
      this.credential = asked;
      // What failed is asked for anew by the next request.
      asked.catch(() => {
        if (this.credential === asked) this.credential = null;
      });
    }
    return this.credential;
  }

  private tell(wait: Parameters<NonNullable<Settings["onWait"]>>[0]): void {
    try {
      this.settings.onWait?.(wait);
    } catch {
      // a caller's mistake in showing why we wait is no reason to lose a payment
    }
  }
}

export function requestIdOf(got: Answer | Lost): string | null {
  const id = got.kind === "answer" ? got.failure?.request_id : undefined;
  return id ?? got.headers?.get("X-Request-Id") ?? null;
}

export function operationIdOf(got: Answer | Lost): string | null {
  const id = got.kind === "answer" ? got.failure?.operation_id : undefined;
  return id ?? got.headers?.get("Payrelay-Operation") ?? null;
}

function queryText(query: Call["query"]): string {
  const parts = Object.entries(query ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}
