/** What became of a call that moves money: done, or not known yet. */
export {};
