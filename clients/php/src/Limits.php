<?php

declare(strict_types=1);

namespace Payrelay;

/** How often and how long a client tries; all times are in seconds. */
final class Limits
{
    /**
     * @param int $tries how often one request is sent at most
     * @param float $timeoutS how long one request may take, its body included
     * @param float $totalS how long a call may take in all, with its pauses and with following
     * @param int $waitS for how long the service is asked to hold an answer until the outcome is known; 0 for not at all
     * @param float $pauseS the first pause
     * @param float $pauseMaxS the longest pause
     */
    public function __construct(
        public readonly int $tries = 6,
        public readonly float $timeoutS = 60,
        public readonly float $totalS = 120,
        public readonly int $waitS = 20,
        public readonly float $pauseS = 1,
        public readonly float $pauseMaxS = 30,
    ) {
        if ($tries < 1 || min($timeoutS, $totalS, $pauseMaxS) <= 0 || $pauseS < 0 || $waitS < 0 || $waitS > 60) {
            throw new \InvalidArgumentException('tries must be at least 1, times greater than 0, and waitS 0 to 60');
        }
    }
}

/** Why a client pauses. `reason` is a code of the service's, or `no_answer`, `time_out`, `unreadable_answer`. */
final class Waiting
{
    public function __construct(
        public readonly string $reason,
        public readonly float $seconds,
        public readonly int $tries,
        public readonly ?string $requestId,
        public readonly ?string $operationId,
    ) {
    }
}

/** What is left of one call's limits. @internal */
final class Budget
{
    public int $tries = 0;
    /** Whether a send of this call, or an earlier one of the same payment, may have been carried out. */
    public bool $isInDoubt = false;
    private readonly float $endsS;

    public function __construct(public readonly Limits $limits)
    {
        $this->endsS = self::nowS() + $limits->totalS;
    }

    /** The seconds of a clock that nobody sets. */
    public static function nowS(): float
    {
        return hrtime(true) / 1e9;
    }

    public function leftS(): float
    {
        return max(0.0, $this->endsS - self::nowS());
    }

    /** The pause after so many sends, no less than `$retryAfterS`; null where it would end too late. */
    public function pauseS(int $count, ?float $retryAfterS): ?float
    {
        $longest = min($this->limits->pauseMaxS, $this->limits->pauseS * 2 ** min($count - 1, 32));
        $share = 0.5 + 0.5 * random_int(0, 1_000_000) / 1_000_000;
        $pause = max($longest * $share, $retryAfterS ?? 0.0);
        return $pause < $this->leftS() ? $pause : null;
    }
}
