/** Calls Payrelay from Node, browsers and React Native, and never charges twice. */

export { Payrelay } from "./client.js";
export type { EffectOptions } from "./effects.js";
export * from "./errors.js";
export type { FollowBy } from "./follow.js";
export type { Json } from "./json.js";
export type { KeyStore } from "./keys.js";
export { type Amount, amountOf, minorUnits } from "./money.js";
export type { EventPage } from "./nouns/events.js";
export type { ReadOptions } from "./nouns/noun.js";
export type { Done, Open, Outcome } from "./outcome.js";
export { type Page, Pages } from "./paging.js";
export type { CallOptions, Settings, StopSignal, Wait } from "./settings.js";
export { indexedDbStore, localStorageStore } from "./stores/browser.js";
export { type AsyncStorage, asyncStorageStore } from "./stores/react-native.js";
export type { StreamOptions } from "./stream.js";
export type * from "./types/checkouts.js";
export type * from "./types/client-tokens.js";
export type * from "./types/customers.js";
export type * from "./types/events.js";
export type * from "./types/operations.js";
export type * from "./types/orders.js";
export type * from "./types/payments.js";
export type * from "./types/subscriptions.js";
