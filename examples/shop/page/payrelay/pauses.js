/** How long to pause before the same request goes again, and the pausing itself. */
import { Stopped } from "./errors.js";
/** Reads Retry-After, in seconds: a number or a date. Null where there is none that can be read. */
export function retryAfterS(headers) {
    const text = headers?.get("Retry-After")?.trim();
    if (!text)
        return null;
    if (/^\d+$/.test(text))
        return Number(text);
    const at = Date.parse(text);
    return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
}
/** The pause after so many tries, in seconds: it doubles, is drawn from its upper half, and is no less than Retry-After. */
export function pauseS(limits, tries, atLeastS) {
    const longest = Math.min(limits.pauseMaxS, limits.pauseS * 2 ** (tries - 1));
    return Math.max(longest * (0.5 + Math.random() / 2), atLeastS ?? 0);
}
/** Pauses; throws `Stopped` where the caller ends the call meanwhile. */
export function pause(seconds, stop, isOpen) {
    return new Promise((resolve, reject) => {
        if (stop?.aborted) {
            reject(new Stopped(isOpen, stop.reason));
            return;
        }
        const onStop = () => {
            clearTimeout(timer);
            stop?.removeEventListener("abort", onStop);
            reject(new Stopped(isOpen, stop?.reason));
        };
        const timer = setTimeout(() => {
            stop?.removeEventListener("abort", onStop);
            resolve();
        }, seconds * 1000);
        stop?.addEventListener("abort", onStop);
    });
}
/** The time that a call may take in all. */
export class Deadline {
    endMs;
    constructor(totalS) {
        this.endMs = monotonicMs() + totalS * 1000;
    }
    /** The seconds that are left; below 0 where it is over. */
    get leftS() {
        return (this.endMs - monotonicMs()) / 1000;
    }
}
function monotonicMs() {
    return typeof performance === "undefined" ? Date.now() : performance.now();
}
