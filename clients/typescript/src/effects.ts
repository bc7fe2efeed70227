/** Calls that move money: with their key, until the outcome is known or nobody knows it. */

import { type Call, type Caller, newProgress, operationIdOf, type Progress } from "./calls.js";
import { PayrelayError, Stopped } from "./errors.js";
import { follow, isWithPerson } from "./follow.js";
import type { Json } from "./json.js";
import { type Attempt, type HeldAttempt, type Keys, type Kind, type LastAttempt } from "./keys.js";
import type { Done, Open, Outcome } from "./outcome.js";
import type { Deadline } from "./pauses.js";
import { retryAfterS } from "./pauses.js";
import type { CallOptions } from "./settings.js";
import { type Answer, type Lost, type Sent, storedAnswer } from "./transport.js";
import type { OperationDetail } from "./types/operations.js";

/** What a call that moves money may have of its own. */
export interface EffectOptions extends CallOptions {
  /** The payment's name, of which its key is made; usually that of the order. It must be the same after a crash. */
  name?: string;
  /**
   * Begins another attempt, with another key, where the last one certainly charged nothing; gives the last one where it took effect.
   * Without it the call always asks for the last attempt.
   */
  again?: boolean;
}

/** A call that moves money. */
export interface Effect {
  readonly kind: Kind;
  readonly call: Call;
  /** The name of the payment where none is given. */
  readonly name?: string | undefined;
}

/** What is sent, and what it belongs to. */
interface Sending {
  readonly request: Sent;
  readonly held: HeldAttempt | null;
  readonly options: CallOptions;
  readonly progress: Progress;
}

/** States of an operation that charged nothing, and whose key keeps that answer. */
const TOOK_NOTHING: ReadonlySet<string> = new Set(["declined", "refused", "failed"]);
const NO_ANSWER = "no_answer";
const OPEN_SENTENCE = "Whether it took effect isn't known yet.";

/** Makes effects on one account; without keys none is ever sent. */
export class Effects {
  constructor(
    private readonly caller: Caller,
    private readonly keys: Keys | null,
  ) {}

  /** Makes a call that moves money. Throws what says that it took no effect. */
  async run<T>(effect: Effect, options: EffectOptions = {}): Promise<Outcome<T>> {
    const deadline = this.caller.deadline(options);
    // What can't be written is found before anything is stored.
    await this.caller.request(effect.call);
    const held = await this.held(effect, options);
    const { waitS } = this.caller.limits;
    const request = await this.caller.request(effect.call, {
      ...keyHeader(held),
      ...(waitS > 0 ? { Prefer: `wait=${Math.floor(waitS)}` } : {}),
    });
    return this.settle({ request, held, options, progress: newProgress(held?.wasThere) }, deadline);
  }

  /** Opens a checkout: it moves no money by itself, but has a key as well, since an order must not get two. */
  async openCheckout(call: Call, name: string, options: EffectOptions = {}): Promise<Json> {
    await this.caller.request(call);
    const held = await this.held({ kind: "checkout", call, name }, options);
    const progress = newProgress(held?.wasThere);
    const request = await this.caller.request(call, keyHeader(held));
    const got = await this.caller.exchange(request, this.caller.deadline(options), progress, options.signal);
    if (got.kind === "answer" && got.failure === null) {
      const id = (got.data as { id?: unknown } | null)?.id;
      await held?.note({ state: "done", ...(typeof id === "string" ? { checkout_id: id } : {}) });
      return got.data;
    }
    const last = got.kind === "gave_up" ? got.last : got;
    if (isRefused(last)) await held?.note({ refused: true });
    throw this.caller.errorOf(last);
  }

  private async held(effect: Effect, options: EffectOptions): Promise<HeldAttempt | null> {
    if (this.keys === null) return null;
    const name = options.name ?? effect.name;
    if (options.again !== true) return this.keys.current(effect.kind, name);
    const look = effect.kind === "checkout" ? this.checkoutOf : this.operationOf;
    return this.keys.another(effect.kind, name, (last) => look(last, options));
  }

  private readonly operationOf = async (last: Attempt, options: CallOptions): Promise<LastAttempt> => {
    const call = { method: "GET", path: `/operations/by-key/${encodeURIComponent(last.key)}` } as const;
    try {
      const operation = (await this.caller.ask(call, options)).data as unknown as OperationDetail;
      if (TOOK_NOTHING.has(operation.state)) return { became: "nothing", operationId: operation.id };
      return { became: operation.state === "succeeded" ? "done" : "open", operationId: operation.id };
    } catch (error) {
      if (!(error instanceof PayrelayError) || error.httpStatus !== 404) throw error;
      // The service refused the request before it became an operation, or never got it.
      return { became: last.refused === true ? "nothing" : "open", operationId: null };
    }
  };

  private readonly checkoutOf = async (last: Attempt, options: CallOptions): Promise<LastAttempt> => {
    if (last.checkout_id === undefined) {
      return { became: last.refused === true ? "nothing" : "done", operationId: null };
    }
    const call = { method: "GET", path: `/checkouts/${encodeURIComponent(last.checkout_id)}` } as const;
    const { state } = (await this.caller.ask(call, options)).data as unknown as { state: string };
    const hasEnded = state === "failed" || state === "cancelled" || state === "expired";
    return { became: hasEnded ? "nothing" : "done", operationId: null };
  };

  /** Sends it and follows it, until it is known what became of it or the limits are reached. */
  private async settle<T>(sending: Sending, deadline: Deadline): Promise<Outcome<T>> {
    const { request, progress, options } = sending;
    for (;;) {
      const got = await this.caller.exchange(request, deadline, progress, options.signal);
      if (got.kind === "gave_up") {
        if (!progress.isInDoubt) throw this.caller.errorOf(got.last);
        return this.open(sending, got.last, operationIdOf(got.last));
      }
      if (got.status !== 202) return this.concluded(sending, got, operationIdOf(got));
      progress.isInDoubt = true;
      const id = operationIdOf(got);
      if (id === null || !(await this.waitedFor(got, deadline, sending))) return this.open(sending, got, id);
      const followed = await this.followed<T>(sending, got, id, deadline);
      if (followed !== "not_sent") return followed;
      // Nothing was done, and the key is free again: the very same request may go.
      const isOver = progress.tries >= this.caller.limits.tries;
      if (isOver || !(await this.caller.waited(got, deadline, progress, options.signal, null))) {
        return this.open(sending, got, id);
      }
    }
  }

  /** Pauses after a 202 as it says, unless the service has held it already or a person must decide. */
  private async waitedFor(got: Answer, deadline: Deadline, { progress, options }: Sending): Promise<boolean> {
    if (got.failure?.code === "needs_attention") return false;
    if (got.headers.get("Preference-Applied") !== null) return true;
    return this.caller.waited(got, deadline, progress, options.signal);
  }

  private async followed<T>(
    sending: Sending,
    before: Answer | Lost,
    id: string,
    deadline: Deadline,
  ): Promise<Outcome<T> | "not_sent"> {
    let seen;
    try {
      seen = await follow(this.caller, id, "wait", deadline, sending.options.signal);
    } catch (error) {
      // Whatever else hinders following, such as a function that gives no credential: the payment was sent.
      if (error instanceof Stopped) throw error;
      return this.open(sending, before, id);
    }
    const { operation } = seen;
    if (operation.state === "not_sent") return "not_sent";
    if (!operation.is_final) return this.open(sending, before, id, operation);
    if (TOOK_NOTHING.has(operation.state)) await sending.held?.note({ state: "nothing" });
    const { answer } = operation;
    const stored = answer === null ? null : storedAnswer(answer.http_status, answer.body, seen.answer.headers);
    return this.concluded(sending, stored ?? withoutAnswer(operation, seen.answer), id, true);
  }

  private async concluded<T>(
    { held }: Sending,
    answer: Answer,
    operationId: string | null,
    isFollowed = false,
  ): Promise<Done<T>> {
    if (answer.failure === null) {
      await held?.note({ state: "done" });
      const isReplay = isFollowed || answer.headers.get("Idempotent-Replayed") === "true";
      return { isDone: true, data: answer.data as T, operationId, isReplay };
    }
    if (answer.failure.code === "declined") await held?.note({ state: "nothing" });
    if (isRefused(answer)) await held?.note({ refused: true });
    throw this.caller.errorOf(answer);
  }

  private open<T>(sending: Sending, last: Answer | Lost, id: string | null, operation?: OperationDetail): Open<T> {
    const reason = last.kind === "lost" ? NO_ANSWER : (last.failure?.code ?? NO_ANSWER);
    return {
      isDone: false,
      operationId: id,
      reason: operation !== undefined && isWithPerson(operation) ? "needs_attention" : reason,
      message: operation?.explanation ?? (last.kind === "answer" ? last.msg : OPEN_SENTENCE),
      isWithPerson: operation === undefined ? reason === "needs_attention" : isWithPerson(operation),
      retryAfterS: retryAfterS(last.headers),
      follow: (options = {}) => this.goOn<T>({ ...sending, options, progress: newProgress(true) }, last, id),
    };
  }

  private async goOn<T>(sending: Sending, last: Answer | Lost, id: string | null): Promise<Outcome<T>> {
    const deadline = this.caller.deadline(sending.options);
    if (id === null) return this.settle(sending, deadline);
    const followed = await this.followed<T>(sending, last, id, deadline);
    return followed === "not_sent" ? this.settle(sending, deadline) : followed;
  }
}

function keyHeader(held: HeldAttempt | null): Record<string, string> {
  return held === null ? {} : { "Idempotency-Key": held.key };
}

function isRefused(got: Answer | Lost): boolean {
  return got.kind === "answer" && got.status === 422 && got.failure?.code === "invalid_request";
}

/** What can be said of a final operation whose answer is no longer kept, or isn't shown to this caller. */
function withoutAnswer(operation: OperationDetail, seen: Answer): Answer {
  const { order_id, payment_id, amount, currency } = operation;
  if (operation.state === "succeeded") {
    return { ...seen, msg: operation.explanation, data: { order_id, payment_id, amount, currency }, failure: null };
  }
  const code = operation.state === "declined" ? "declined" : "conflict";
  const failure = { code, retry: "never", operation_id: operation.id };
  return { ...seen, status: code === "declined" ? 402 : 409, msg: operation.explanation, data: null, failure };
}
