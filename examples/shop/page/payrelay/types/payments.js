/** Payments: what is sent to charge, capture and refund, and what the gateway answers. */
export {};
