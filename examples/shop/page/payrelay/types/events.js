/** Events: what happened, as a feed, as a stream and by webhook; and the endpoints that get them. */
export {};
