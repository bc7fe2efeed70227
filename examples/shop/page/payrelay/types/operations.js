/** Operations: what changes something at the gateway, and what became of it. */
export {};
