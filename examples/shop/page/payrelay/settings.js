/** How a client is set up, and what it tells while it waits. */
/** Fills in what isn't set. Throws RangeError for a limit that is none. */
export function limitsOf(settings) {
    const { tries = 6, timeoutS = 60, totalS = 120, waitS = 20, pauseS = 1, pauseMaxS = 30 } = settings;
    const limits = { tries, timeoutS, totalS, waitS, pauseS, pauseMaxS };
    for (const [name, value] of Object.entries(limits)) {
        const least = name === "waitS" || name === "pauseS" || name === "pauseMaxS" ? 0 : Number.MIN_VALUE;
        if (!Number.isFinite(value) || value < least)
            throw new RangeError(`${name} must be a number above 0, and is ${value}`);
    }
    if (!Number.isInteger(tries))
        throw new RangeError(`tries must be a whole number, and is ${tries}`);
    if (waitS >= timeoutS)
        throw new RangeError("waitS must be below timeoutS: the service would answer too late");
    return limits;
}
