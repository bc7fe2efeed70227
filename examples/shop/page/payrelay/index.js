/** Calls Payrelay from Node, browsers and React Native, and never charges twice. */
export { Payrelay } from "./client.js";
export * from "./errors.js";
export { amountOf, minorUnits } from "./money.js";
export { Pages } from "./paging.js";
export { indexedDbStore, localStorageStore } from "./stores/browser.js";
export { asyncStorageStore } from "./stores/react-native.js";
