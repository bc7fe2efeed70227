/** What became of a call that moves money: done, or not known yet. */

import type { StopSignal } from "./settings.js";

/** The operation took effect. */
export interface Done<T> {
  readonly isDone: true;
  /** What the gateway answered. */
  readonly data: T;
  readonly operationId: string | null;
  /** True where the service gave an answer that it had given, or found, before. */
  readonly isReplay: boolean;
}

/**
 * Nobody knows yet whether it took effect. The money may have moved: say that you wait for the payment, and take it by no other way.
 */
export interface Open<T> {
  readonly isDone: false;
  /** The operation to follow; null where the service named none. */
  readonly operationId: string | null;
  /** The service's code, such as `outcome_unknown`, or `no_answer`. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
  /** True where an operator of the service must decide, which may take a day. */
  readonly isWithPerson: boolean;
  /** When to go on following, in seconds; null where nothing says so. */
  readonly retryAfterS: number | null;
  /** Goes on following, within new limits. Throws as the call itself does. */
  follow(options?: { signal?: StopSignal; totalS?: number }): Promise<Outcome<T>>;
}

/** What became of a call that moves money; everything else is thrown. */
export type Outcome<T> = Done<T> | Open<T>;
