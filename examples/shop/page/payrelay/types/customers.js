/** Stored customers: people who approved a card, which may be charged later. */
export {};
