/** Subscriptions: the gateway's records, what the service knows of them, retries and cancellations. */

import type { EffectOptions } from "../effects.js";
import type { Outcome } from "../outcome.js";
import type { Pages } from "../paging.js";
import type { CallOptions } from "../settings.js";
import type { PaymentRecord, Reading } from "../types/payments.js";
import type { SubscriptionRecord, SubscriptionState } from "../types/subscriptions.js";
import { Noun, type ReadOptions, segment } from "./noun.js";

/** The calls about subscriptions that ask the gateway. */
export class Subscriptions extends Noun {
  /** Gives all subscriptions. */
  list(options?: ReadOptions): Promise<Reading<SubscriptionRecord[]>> {
    return this.reading("/subscriptions", options);
  }

  /** Gives one subscription; with its payments where they are wanted. */
  retrieve(id: string, options: ReadOptions & { withPayments?: boolean } = {}): Promise<Reading<SubscriptionRecord>> {
    const query = { expand: options.withPayments === true ? "payments" : undefined };
    return this.reading(`/subscriptions/${segment(id)}`, options, query);
  }

  /** Gives the payments of a subscription; `missing` and Busy are as for the payments of an order. */
  payments(id: string, options?: ReadOptions): Promise<Reading<PaymentRecord[]>> {
    return this.readingOfList(`/subscriptions/${segment(id)}/payments`, options);
  }

  /** Charges the failed installment. With a store it needs a name that tells one failure from the next, such as its date. */
  retry(id: string, options?: EffectOptions): Promise<Outcome<null>> {
    const call = { method: "POST", path: `/subscriptions/${segment(id)}/retry` } as const;
    return this.effects.run({ kind: "retry", call }, options);
  }

  /** Cancels a subscription. Its name is the subscription, unless another one is given. */
  cancel(id: string, options?: EffectOptions): Promise<Outcome<null>> {
    const call = { method: "DELETE", path: `/subscriptions/${segment(id)}` } as const;
    return this.effects.run({ kind: "cancel", call, name: id }, options);
  }
}

/** The calls about subscriptions that the service answers by what it knows. */
export class SubscriptionStates extends Noun {
  /** Lists the known states. */
  list(options?: CallOptions & { limit?: number }): Pages<SubscriptionState> {
    return this.linked("/subscription-states", { limit: options?.limit }, options);
  }

  /** Gives the known state of one subscription. */
  show(id: string, options?: CallOptions): Promise<SubscriptionState> {
    return this.data({ method: "GET", path: `/subscription-states/${segment(id)}` }, options);
  }
}
