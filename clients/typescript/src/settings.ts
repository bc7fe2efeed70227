/** How a client is set up, and what it tells while it waits. */

import type { KeyStore } from "./keys.js";

/** An `AbortSignal`, or what React Native has in its place. */
export type StopSignal = Pick<AbortSignal, "aborted" | "addEventListener" | "removeEventListener"> & { readonly reason?: unknown };

/** Why a client waits before it sends something again. */
export interface Wait {
  /** A code of the service, or `no_answer`, `time_out`, `unreadable_answer`, `no_credential`. */
  readonly reason: string;
  /** How long it waits, in seconds. */
  readonly seconds: number;
  /** How often it has sent the request so far. */
  readonly tries: number;
  readonly requestId: string | null;
  readonly operationId: string | null;
}

/** The settings of a client. Only the first two are required. */
export interface Settings {
  /** The address of the account's API, such as `https://pay.example.com/gateway/api`. */
  address: string;
  /** A key, a client token, or a function that gives one: it is called again after a 401. */
  credential: string | (() => string | Promise<string>);
  /** Where keys are stored. Without a store, no key is ever sent. */
  store?: KeyStore | null;
  /** How often a request is sent at most (6). */
  tries?: number;
  /** How long one request may take, in seconds, its body included (60). */
  timeoutS?: number;
  /** How long a call may take in all, in seconds, with pauses and following (120). */
  totalS?: number;
  /** How long the service may hold an answer until the outcome is known, in seconds (20); 0 for not at all. */
  waitS?: number;
  /** The first pause, in seconds (1); each further one is twice as long. */
  pauseS?: number;
  /** The longest pause that isn't the service's own, in seconds (30). */
  pauseMaxS?: number;
  /** Called before each pause. What it throws ends nothing. */
  onWait?: (wait: Wait) => void;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What a single call may have of its own. */
export interface CallOptions {
  /** Ends the call, with `Stopped`. */
  signal?: StopSignal;
  /** In place of the client's own. */
  totalS?: number;
}

/** The settings with their usual values. */
export interface Limits {
  readonly tries: number;
  readonly timeoutS: number;
  readonly totalS: number;
  readonly waitS: number;
  readonly pauseS: number;
  readonly pauseMaxS: number;
}

/** Fills in what isn't set. Throws RangeError for a limit that is none. */
export function limitsOf(settings: Settings): Limits {
  const { tries = 6, timeoutS = 60, totalS = 120, waitS = 20, pauseS = 1, pauseMaxS = 30 } = settings;
  const limits = { tries, timeoutS, totalS, waitS, pauseS, pauseMaxS };
  for (const [name, value] of Object.entries(limits)) {
    const least = name === "waitS" || name === "pauseS" || name === "pauseMaxS" ? 0 : Number.MIN_VALUE;
    if (!Number.isFinite(value) || value < least) throw new RangeError(`${name} must be a number above 0, and is ${value}`);
  }
  if (!Number.isInteger(tries)) throw new RangeError(`tries must be a whole number, and is ${tries}`);
  if (waitS >= timeoutS) throw new RangeError("waitS must be below timeoutS: the service would answer too late");
  return limits;
}
