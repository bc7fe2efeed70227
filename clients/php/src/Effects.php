<?php

declare(strict_types=1);

namespace Payrelay;

/** It took effect. */
final class Done
{
    public readonly bool $isDone;

    public function __construct(
        public readonly mixed $data,
        public readonly ?string $operationId,
        public readonly bool $isReplay,
        public readonly ?string $requestId,
    ) {
        $this->isDone = true;
    }
}

/**
 * Nobody knows yet whether it took effect: the money may have moved.
 *
 * Say that you wait for the payment, and take it by no other way. The same call later asks again, and charges nobody twice.
 * `reason` is a code of the service's, or `no_answer`; with `isWithPerson` an operator must decide, which may take a day.
 */
final class Open
{
    public readonly bool $isDone;

    /** @param \Closure(self): (Done|self) $resume */
    public function __construct(
        public readonly string $reason,
        public readonly string $message,
        public readonly ?string $operationId,
        public readonly bool $isWithPerson,
        public readonly ?float $retryAfterS,
        public readonly ?string $requestId,
        private readonly \Closure $resume,
    ) {
        $this->isDone = false;
    }

    /** Follows it for as long again. @throws PayrelayError where it took no effect */
    public function follow(): Done|self
    {
        return ($this->resume)($this);
    }
}

/** Follows an operation to its end. @internal */
final class Follower
{
    public const WITH_PERSON = ['needs_attention', 'held'];
    private const GOES_ON = '/\.(pending|unknown)$/D';

    public function __construct(private readonly Sender $sender)
    {
    }

    /** Whether an operation is final, or must be decided by a person. */
    public static function hasEnded(Reply $reply): bool
    {
        $operation = is_array($reply->data) ? $reply->data : [];
        $isFinal = ($operation['is_final'] ?? false) === true;
        return $reply->status === 200 && ($isFinal || in_array($operation['state'] ?? '', self::WITH_PERSON, true));
    }

    /** Gives the last answer: the operation at its end, or why it can't be followed to there. */
    public function follow(string $operationId, Budget $budget, string $by = 'wait'): Reply
    {
        if ($by === 'stream') {
            try {
                foreach ($this->events("operation:$operationId", $budget) as $event) {
                    if (preg_match(self::GOES_ON, (string) ($event['type'] ?? '')) !== 1) {
                        break;
                    }
                }
            } catch (Stopped $stopped) {
                throw $stopped;
            } catch (PayrelayError) {
                // Reads tell as well.
            }
        }
        $failures = 0;
        for ($reads = 1;; $reads++) {
            $waitS = $by === 'poll' ? 0 : (int) min($this->sender->limits->waitS, $budget->leftS());
            $headers = $waitS > 0 ? ['Prefer' => "wait=$waitS"] : [];
            $read = new Request('GET', '/operations/' . rawurlencode($operationId), headers: $headers);
            $got = $this->sender->once($read, $budget);
            if (self::hasEnded($got) || ($got->isFinal() && $got->status !== 200)) {
                return $got;
            }
            $failures = $got->status === 200 ? 0 : $failures + 1;
            $count = isset($got->headers['preference-applied']) ? 1 : $reads;
            $isOver = $failures >= $this->sender->limits->tries;
            if ($isOver || !$this->sender->pause($got, $budget, $count, $operationId)) {
                return $got;
            }
        }
    }

    /** Gives the events of a subject as they come, and goes on where the stream breaks. @return \Generator<int, array<string, mixed>> */
    public function events(string $subject, Budget $budget, ?int $after = null): \Generator
    {
        $failures = 0;
        while ($budget->leftS() > 0) {
            $headers = $after === null ? [] : ['Last-Event-ID' => (string) $after];
            $request = new Request('GET', '/events/stream', ['subject' => $subject], headers: $headers);
            $text = '';
            try {
                foreach ($this->sender->stream($request, $budget->leftS()) as $line) {
                    if (str_starts_with($line, 'data:')) {
                        $text .= ltrim(substr($line, 5), ' ');
                    } elseif ($line === '' && $text !== '') {
                        $event = json_decode($text, true);
                        $text = '';
                        if (is_array($event)) {
                            $after = is_int($event['position'] ?? null) ? $event['position'] : $after;
                            $failures = 0;
                            yield $event;
                        }
                    }
                }
                $got = Reply::lost(Reply::NO_ANSWER, 'the stream has ended');
            } catch (PayrelayError $error) {
                if ($error->retryAfterS === null) {
                    throw $error;
                }
                $got = Reply::lost((string) $error->errorCode, $error->getMessage(), (string) (int) $error->retryAfterS);
            }
            if (++$failures > $this->sender->limits->tries || !$this->sender->pause($got, $budget, $failures)) {
                return;
            }
        }
    }
}

/**
 * Carries out what must happen once. @internal
 *
 * 1. With a store, the record is stored and read back before the request leaves. Where that fails, nothing is sent.
 * 2. Without a store no key is sent, so that the service itself knows an equal request.
 * 3. A payment is never sent again to learn its outcome: its operation is read instead.
 */
final class Effects
{
    private const NOTHING_TAKEN = ['declined', 'refused', 'failed'];
    private const PAGES_ENDED = ['failed', 'cancelled', 'expired'];

    public function __construct(
        private readonly Sender $sender,
        private readonly Follower $follower,
        private readonly ?Store $store,
        private readonly string $account,
    ) {
    }

    /** Carries out what moves money, to its end or to the end of its limits. @throws PayrelayError where it took no effect */
    public function carryOut(string $kind, Request $request, ?string $name, bool $again): Done|Open
    {
        [$record, $wasThere] = $this->held($kind, $name, $again);
        $waitS = $this->sender->limits->waitS;
        $headers = $waitS > 0 ? ['Prefer' => "wait=$waitS"] : [];
        $budget = new Budget($this->sender->limits);
        $budget->isInDoubt = $wasThere;
        return $this->send($request->with($headers + self::keyHeader($record)), $record, $budget);
    }

    /** Opens a checkout, which moves no money by itself, but must be there once. @throws PayrelayError */
    public function openCheckout(Request $request, string $name, bool $again): mixed
    {
        [$record] = $this->held('checkout', $name, $again);
        $got = $this->sender->send($request->with(self::keyHeader($record)), new Budget($this->sender->limits));
        $this->settle($record, $got);
        return $got->status === 200 ? $got->data : throw $got->error();
    }

    private function send(Request $request, ?Record $record, Budget $budget): Done|Open
    {
        $got = $this->sender->send($request, $budget);
        if ($got->status !== 202) {
            return $this->conclude($request, $record, $got, $budget);
        }
        $was = $this->open($request, $record, $got);
        // An answer that was held has waited already.
        $isHeld = isset($got->headers['preference-applied']);
        if ($was->isWithPerson || $was->operationId === null || (!$isHeld && !$this->sender->pause($got, $budget, 1))) {
            return $was;
        }
        return $this->follow($request, $record, $was, $budget);
    }

    private function follow(Request $request, ?Record $record, Open $was, Budget $budget): Done|Open
    {
        $budget->isInDoubt = true;
        $end = $this->follower->follow((string) $was->operationId, $budget);
        if (!Follower::hasEnded($end)) {
            return $was;
        }
        $state = $end->data['state'] ?? '';
        if (($end->data['is_final'] ?? false) !== true) {
            $reply = Reply::lost('needs_attention', (string) ($end->data['explanation'] ?? ''));
            return $this->open($request, $record, $reply, $was->operationId);
        }
        if ($state === 'not_sent') {
            // Nothing was done, and the key is free again: the very same request may go.
            $notSent = Reply::lost($state, (string) ($end->data['explanation'] ?? ''));
            $isOver = $budget->tries >= $this->sender->limits->tries;
            if ($isOver || !$this->sender->pause($notSent, $budget, $budget->tries, $was->operationId)) {
                return $was;
            }
            return $this->send($request, $record, $budget);
        }
        if (in_array($state, self::NOTHING_TAKEN, true)) {
            $this->note($record, 'nothing');
        }
        return $this->conclude($request, $record, Reply::replayOf($end->data), $budget);
    }

    private function conclude(Request $request, ?Record $record, Reply $got, Budget $budget): Done|Open
    {
        $this->settle($record, $got);
        if ($got->status === 200) {
            return new Done($got->data, $got->operationId(), $got->isReplay(), $got->requestId());
        }
        $isVerdict = $got->isFinal() && in_array($got->status, [402, 409, 422], true);
        if ($budget->isInDoubt && !$isVerdict) {
            return $this->open($request, $record, $got);
        }
        throw $got->error();
    }

    private function open(Request $request, ?Record $record, Reply $got, ?string $operationId = null): Open
    {
        $resume = function (Open $was) use ($request, $record): Done|Open {
            $budget = new Budget($this->sender->limits);
            $budget->isInDoubt = true;
            return $was->operationId === null
                ? $this->send($request, $record, $budget) : $this->follow($request, $record, $was, $budget);
        };
        $isLost = in_array($got->code(), [Reply::TIME_OUT, Reply::UNREADABLE, Reply::NO_ANSWER, Reply::NO_CREDENTIAL], true);
        return new Open(
            $isLost ? Reply::NO_ANSWER : $got->code(),
            $got->msg,
            $operationId ?? $got->operationId(),
            in_array($got->code(), Follower::WITH_PERSON, true),
            $got->retryAfterS(),
            $got->requestId(),
            $resume,
        );
    }

    /** Gives the stored record of the attempt that is to be sent, and whether it was there before this call. @return array{?Record, bool} */
    private function held(string $kind, ?string $name, bool $again): array
    {
        if ($this->store === null) {
            return [null, false];
        }
        $full = Record::nameOf($kind, $this->account, $name);
        $record = $this->stored($full);
        if ($record === null) {
            return [$this->put(Record::begun($full, 1)), false];
        }
        if (!$again || !$this->tookNothing($kind, $record)) {
            return [$record, true];
        }
        return [$this->put(Record::begun($full, $record->attempt + 1)), false];
    }

    /** Tells whether the last attempt took nothing, for good; false where it took effect. @throws AttemptOpen */
    private function tookNothing(string $kind, Record $record): bool
    {
        if ($record->state === 'nothing') {
            return true;
        }
        if ($kind === 'checkout') {
            if ($record->checkoutId === null) {
                return $record->isRefused;
            }
            $page = $this->sender->ask(new Request('GET', '/checkouts/' . rawurlencode($record->checkoutId)))->data;
            return in_array($page['state'] ?? '', self::PAGES_ENDED, true);
        }
        if ($record->state === 'done') {
            return false;
        }
        $operationId = null;
        try {
            $operation = $this->sender->ask(new Request('GET', '/operations/by-key/' . rawurlencode($record->key())))->data;
            $operationId = $operation['id'] ?? null;
            if (in_array($operation['state'] ?? '', self::NOTHING_TAKEN, true)) {
                return true;
            }
            if (($operation['state'] ?? '') === 'succeeded') {
                return false;
            }
        } catch (NotFound) {
            // The service refused the request before it became an operation, or never got it.
            if ($record->isRefused) {
                return true;
            }
        }
        $message = "attempt {$record->attempt} of {$record->name} may have taken effect";
        throw new AttemptOpen($message, operationId: $operationId);
    }

    private function stored(string $name): ?Record
    {
        try {
            $text = $this->store?->get($name);
        } catch (\Throwable $error) {
            throw new StoreFailed("the store could not be read: {$error->getMessage()}", previous: $error);
        }
        return $text === null ? null : Record::read($name, $text);
    }

    /** Stores a record and reads it back; gives what is stored then. @throws StoreFailed */
    private function put(Record $record): Record
    {
        try {
            $this->store?->put($record->name, $record->text());
        } catch (\Throwable $error) {
            throw new StoreFailed("the key could not be stored: {$error->getMessage()}", previous: $error);
        }
        $stored = $this->stored($record->name);
        if ($stored === null || $stored->attempt < $record->attempt) {
            throw new StoreFailed("the store doesn't have what was put into it");
        }
        return $stored;
    }

    private function settle(?Record $record, Reply $got): void
    {
        if ($got->status === 200) {
            $isPage = $record !== null && str_starts_with($record->name, 'checkout/') && is_array($got->data);
            $this->note($record, 'done', checkoutId: $isPage ? ($got->data['id'] ?? null) : null);
        } elseif ($got->code() === 'declined') {
            $this->note($record, 'nothing');
        } elseif ($got->code() === 'invalid_request') {
            $this->note($record, 'open', isRefused: true);
        }
    }

    /** Stores what became of an attempt. A failure is no matter: the next call gets the same answer. */
    private function note(?Record $record, string $state, bool $isRefused = false, ?string $checkoutId = null): void
    {
        if ($record === null || $record->state !== 'open') {
            return;
        }
        $ended = new Record($record->name, $record->attempt, $state, $isRefused, $checkoutId);
        try {
            $stored = $this->stored($record->name);
            if ($stored === null || ($stored->attempt <= $record->attempt && $stored != $ended)) {
                $this->store?->put($record->name, $ended->text());
            }
        } catch (\Throwable) {
            // The answer counts all the same.
        }
    }

    /** @return array<string, string> */
    private static function keyHeader(?Record $record): array
    {
        return $record === null ? [] : ['Idempotency-Key' => $record->key()];
    }
}
