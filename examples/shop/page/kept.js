// What the phone keeps through a reload: the number of each order or page that isn't known to have ended.

let place = "";

/** Says whose it is: a phone may be used by several. */
export function keepFor(shopper) {
  place = `tea-shop/${shopper}`;
}

/** Gives what is kept for some goods, or for a page of the gateway's; null where nothing is. */
export function kept(what) {
  return JSON.parse(localStorage.getItem(`${place}/${what}`));
}

/** Keeps it; null forgets it. */
export function keep(what, value) {
  if (value === null) localStorage.removeItem(`${place}/${what}`);
  else localStorage.setItem(`${place}/${what}`, JSON.stringify(value));
}

/** Gives a number that nobody else has. Unlike `crypto.randomUUID`, it works without TLS, on a phone in the same network. */
export function newNumber() {
  return [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
