/** Checkouts: requests to customers that they answer on the gateway's page. */
export {};
