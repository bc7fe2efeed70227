/** Subscriptions: the gateway's records of them, and the states that the service knows. */
export {};
