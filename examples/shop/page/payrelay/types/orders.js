/** Orders: what was paid, held, given back, charged back and left. */
export {};
