/**
 * Idempotency-Keys: one for each payment and attempt, sent only where it was stored durably before.
 *
 * The key is made of the payment's name and the number of the attempt. So two processes that begin the same attempt at the
 * same moment send the same key, and a store that was emptied gives the same keys again.
 */
import { AttemptOpen, NameNeeded, StoreFailed } from "./errors.js";
const KEY_LENGTH_MAX = 255;
const STATES = ["open", "done", "nothing"];
/** Writes a name in the characters that a key may have. */
export function encoded(name) {
    try {
        // The four marks are all that encodeURIComponent leaves alone beyond letters, digits and ". _ ~ -"; `!` too.
        return encodeURIComponent(name).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
    }
    catch (cause) {
        throw new NameNeeded("the payment's name is no valid Unicode", { code: "name_needed", cause });
    }
}
/** The keys of one account, in one store. */
export class Keys {
    store;
    account;
    constructor(store, account) {
        this.store = store;
        this.account = account;
    }
    /**
     * Gives the attempt to send: the last one, or the first where there is none. It is durable when this resolves.
     *
     * @throws {StoreFailed} where it can't be stored; {NameNeeded} where the payment has no name that fits.
     */
    async current(kind, name) {
        const place = this.place(kind, name);
        const found = await this.read(place);
        if (found !== null)
            return new HeldAttempt(this, place, found, true);
        return this.begin(place, 1);
    }
    /**
     * Begins another attempt where the last one certainly charged nothing; else gives the last one, if it took effect.
     *
     * @param look asks the service what became of the last attempt.
     * @throws {AttemptOpen} where that isn't known; and as `current`.
     */
    async another(kind, name, look) {
        const place = this.place(kind, name);
        const last = await this.read(place);
        if (last === null)
            return this.begin(place, 1);
        if (last.state === "done" && last.checkout_id === undefined)
            return new HeldAttempt(this, place, last, true);
        if (last.state !== "nothing") {
            const known = await look(last);
            if (known.became === "done")
                return new HeldAttempt(this, place, last, true);
            if (known.became === "open") {
                throw new AttemptOpen(`attempt ${last.attempt} of ${place} may have charged`, {
                    code: "attempt_open",
                    operationId: known.operationId,
                });
            }
        }
        return this.begin(place, last.attempt + 1);
    }
    /** Puts an attempt, and reads it back: some stores lose what they take. */
    async put(place, attempt) {
        const text = JSON.stringify(attempt);
        let kept;
        try {
            await this.store.put(place, text);
            kept = await this.store.get(place);
        }
        catch (cause) {
            throw new StoreFailed(`the key of ${place} could not be stored: ${String(cause)}`, { code: "store_failed", cause });
        }
        if (kept === null)
            throw new StoreFailed(`the store has lost the key of ${place}`, { code: "store_failed" });
        if (kept !== text && readAttempt(kept, place).attempt < attempt.attempt) {
            throw new StoreFailed(`the store has kept an older key of ${place}`, { code: "store_failed" });
        }
    }
    async begin(place, attempt) {
        const begun = { v: 1, attempt, key: `${place}/${attempt}`, state: "open" };
        if (begun.key.length > KEY_LENGTH_MAX) {
            throw new NameNeeded(`the key would have ${begun.key.length} characters, and ${KEY_LENGTH_MAX} are allowed`, {
                code: "name_needed",
            });
        }
        await this.put(place, begun);
        return new HeldAttempt(this, place, begun, false);
    }
    place(kind, name) {
        if (name === undefined || name === "") {
            throw new NameNeeded(`a ${kind} needs a name of its own`, { code: "name_needed" });
        }
        return `${kind}/${this.account}/${encoded(name)}`;
    }
    async read(place) {
        let text;
        try {
            text = await this.store.get(place);
        }
        catch (cause) {
            throw new StoreFailed(`the key of ${place} could not be read: ${String(cause)}`, { code: "store_failed", cause });
        }
        return text === null || text === undefined ? null : readAttempt(text, place);
    }
}
/** An attempt that is in the store, and may be sent. */
export class HeldAttempt {
    keys;
    place;
    attempt;
    wasThere;
    constructor(keys, place, attempt, 
    /** True where it was there before this call: it may have been sent by then. */
    wasThere) {
        this.keys = keys;
        this.place = place;
        this.attempt = attempt;
        this.wasThere = wasThere;
    }
    get key() {
        return this.attempt.key;
    }
    /**
     * Notes what came of it. That this fails changes no outcome: the next call sends the same key, and gets the same answer.
     */
    async note(changes) {
        const noted = { ...this.attempt, ...changes };
        if (JSON.stringify(noted) === JSON.stringify(this.attempt))
            return;
        try {
            await this.keys.put(this.place, noted);
            this.attempt = noted;
        }
        catch (error) {
            if (!(error instanceof StoreFailed))
                throw error;
        }
    }
}
function readAttempt(text, place) {
    let value;
    try {
        value = JSON.parse(text);
    }
    catch {
        value = null;
    }
    const { v, attempt, key, state } = (value ?? {});
    const isWhole = v === 1 && Number.isSafeInteger(attempt) && typeof key === "string" && STATES.includes(state);
    if (!isWhole || key !== `${place}/${String(attempt)}`) {
        throw new StoreFailed(`what is stored for ${place} is no key of this package`, { code: "store_failed" });
    }
    return value;
}
