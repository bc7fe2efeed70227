/** Events: what happened, as a feed, as a stream and by webhook; and the endpoints that get them. */

import type { Json } from "../json.js";

/** The types of events that are known; others may be added. */
export type EventType =
  | `operation.${"succeeded" | "declined" | "refused" | "failed" | "not_sent" | "pending" | "unknown" | "held" | "needs_attention"}`
  | "payment.charged_back"
  | "payment.refund_failed"
  | "order.paid_again"
  | `subscription.${"updated" | "installment_paid" | "installment_failed" | "completed" | "stopped"}`
  | `customer.${"created" | "updated" | "removed" | "erased"}`
  | `checkout.${"completed" | "notified" | "failed" | "cancelled" | "expired"}`
  | `endpoint.${"test" | "stopped"}`
  | (string & {});

/** An event. Its amounts are texts. Store `id` with what you did: the same event may come twice. */
export interface WebhookEvent {
  id: string;
  type: EventType;
  /** RFC 3339, in UTC. */
  timestamp: string;
  account: string;
  /** What it is about, such as `operation:op_…`. */
  subject: string;
  data: { [member: string]: Json };
  traceparent?: string;
}

/** An event with its place in the feed. */
export interface PayrelayEvent extends WebhookEvent {
  position: number;
}

/** Which events are read. */
export interface EventFilter {
  /** The position to continue after; 0 is the beginning. */
  after?: number;
  /** A type, or types such as `operation.*`. */
  type?: string;
  subject?: string;
}

/** An address that events are sent to. */
export interface Endpoint {
  id: string;
  url: string;
  types: string[];
  label: string | null;
  state: "active" | "paused" | "stopped";
  reason: string | null;
  account: string;
  principal: string;
  failing_since: string | null;
  older_secret_ends_at: string | null;
  created_at: string;
  updated_at: string;
}

/** A new endpoint, or one with a new secret, which is shown this once. */
export interface IssuedEndpoint extends Endpoint {
  secret: string;
}

/** The body that registers an endpoint. */
export interface EndpointRequest {
  url: string;
  types?: string[];
  label?: string;
}

/** The body that changes an endpoint; an absent member stays. */
export interface EndpointChanges {
  url?: string;
  types?: string[];
  label?: string | null;
  state?: Endpoint["state"];
}

/** Which events are sent again: some by their ids, or all of a span of time. */
export type ReplayRequest = { ids: string[] } | { since: string; until?: string };

/** How many events are sent again; `after` is null at the end. */
export interface ReplayResult {
  events: number;
  after: number | null;
}

/** The delivery of an event to an endpoint. */
export interface Delivery {
  position: number;
  event_id: string;
  type: string;
  subject: string;
  state: "waiting" | "delivered" | "given_up";
  attempts: number;
  queued_at: string;
  last_try_at: string | null;
  next_try_at: string | null;
  last_status: number | null;
  last_failure: string | null;
}
