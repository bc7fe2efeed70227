<?php

declare(strict_types=1);

namespace Payrelay;

/** What came back for one request: an answer of the service's, or none that can be relied on. @internal */
final class Reply
{
    public const NO_ANSWER = 'no_answer';
    public const TIME_OUT = 'time_out';
    public const UNREADABLE = 'unreadable_answer';
    public const NO_CREDENTIAL = 'no_credential';

    private const BY_CODE = [
        'declined' => Declined::class,
        'in_progress' => Busy::class,
        'idempotency_mismatch' => KeyReused::class,
        'position_lost' => PositionLost::class,
    ];
    private const BY_STATUS = [
        401 => Unauthenticated::class, 402 => Declined::class, 403 => Forbidden::class, 404 => NotFound::class,
        409 => Conflict::class, 410 => PositionLost::class, 429 => Busy::class, 503 => Busy::class,
    ];

    /**
     * @param int $status 0 where there was no answer
     * @param array<string, mixed> $error
     * @param array<string, string> $headers by their names in small letters
     */
    private function __construct(
        public readonly int $status,
        public readonly string $msg,
        public readonly mixed $data,
        public readonly array $error,
        public readonly array $headers,
        private readonly string $lostReason = '',
    ) {
    }

    public static function lost(string $reason, string $message, ?string $retryAfter = null): self
    {
        return new self(0, $message, null, [], $retryAfter === null ? [] : ['retry-after' => $retryAfter], $reason);
    }

    /** @param array<string, string> $headers */
    public static function read(int $status, array $headers, string $body): self
    {
        try {
            $reply = self::ofEnvelope($status, $headers, ExactJson::decode($body));
        } catch (\JsonException) {
            $reply = null;
        }
        return $reply ?? self::lost(
            self::UNREADABLE,
            "the answer of status $status isn't the service's",
            $headers['retry-after'] ?? null,
        );
    }

    /** @param array<string, string> $headers */
    public static function ofEnvelope(int $status, array $headers, mixed $envelope): ?self
    {
        if (!is_array($envelope) || !array_key_exists('data', $envelope) || !is_string($envelope['msg'] ?? null)) {
            return null;
        }
        $error = $envelope['error'] ?? [];
        if (!is_int($envelope['status'] ?? null) || !is_array($error) || ($envelope['status'] === 1) !== ($status === 200)) {
            return null;
        }
        $isSuccess = $status >= 200 && $status < 300;
        if (!$isSuccess && !(is_string($error['code'] ?? null) && is_string($error['retry'] ?? null))) {
            return null;
        }
        return new self($status, $envelope['msg'], ExactJson::plain($envelope['data']), $error, $headers);
    }

    /**
     * Gives the answer that a request would have got whose operation is final.
     *
     * @param array<string, mixed> $operation
     */
    public static function replayOf(array $operation): self
    {
        $headers = ['payrelay-operation' => (string) ($operation['id'] ?? ''), 'idempotent-replayed' => 'true'];
        $answer = $operation['answer'] ?? null;
        if (is_array($answer)) {
            $reply = self::ofEnvelope((int) ($answer['http_status'] ?? 0), $headers, $answer['body'] ?? null);
            if ($reply !== null) {
                return $reply;
            }
        }
        $msg = (string) ($operation['explanation'] ?? '');
        if (($operation['state'] ?? '') === 'succeeded') {
            $known = ['order_id' => 1, 'payment_id' => 1, 'amount' => 1, 'currency' => 1];
            return new self(200, $msg, array_intersect_key($operation, $known), [], $headers);
        }
        [$status, $code] = ($operation['state'] ?? '') === 'declined' ? [402, 'declined'] : [409, 'conflict'];
        return new self($status, $msg, null, ['code' => $code, 'retry' => 'never'], $headers);
    }

    public function isLost(): bool
    {
        return $this->status === 0;
    }

    public function code(): string
    {
        return $this->isLost() ? $this->lostReason : (string) ($this->error['code'] ?? '');
    }

    /** Whether the same request would get the same answer again. */
    public function isFinal(): bool
    {
        return $this->status === 200 || (!$this->isLost() && $this->status !== 202 && ($this->error['retry'] ?? '') === 'never');
    }

    public function requestId(): ?string
    {
        $named = $this->error['request_id'] ?? $this->headers['x-request-id'] ?? null;
        return is_string($named) ? $named : null;
    }

    public function operationId(): ?string
    {
        $named = $this->headers['payrelay-operation'] ?? $this->error['operation_id'] ?? null;
        return is_string($named) ? $named : null;
    }

    /** @return list<string> the ids of payments that took money, and that the gateway's record doesn't show yet */
    public function missing(): array
    {
        return array_values(array_filter(explode(',', $this->headers['payrelay-missing'] ?? ''), static fn (string $id) => $id !== ''));
    }

    /** Whether this says that a list of the gateway's is empty, and not that it doesn't show something yet. */
    public function isEmptyList(): bool
    {
        return $this->status === 404 && $this->data === [] && $this->isFinal();
    }

    public function isReplay(): bool
    {
        return ($this->headers['idempotent-replayed'] ?? '') === 'true';
    }

    public function retryAfterS(): ?float
    {
        $text = trim($this->headers['retry-after'] ?? '');
        if ($text !== '' && ctype_digit($text)) {
            return (float) substr($text, 0, 9);
        }
        $moment = $text === '' ? false : \DateTimeImmutable::createFromFormat(DATE_RFC7231, $text);
        return $moment === false ? null : (float) max(0, $moment->getTimestamp() - time());
    }

    /** Gives the error that tells what to do about an answer that is no success. */
    public function error(): PayrelayError
    {
        if ($this->isLost()) {
            return new NoAnswer($this->msg, $this->lostReason, retryAfterS: $this->retryAfterS());
        }
        $kind = self::BY_CODE[$this->code()] ?? self::BY_STATUS[$this->status]
            ?? ($this->status >= 500 ? ServiceFault::class : InvalidRequest::class);
        if ($kind === NotFound::class && ($this->error['retry'] ?? '') === 'after') {
            $kind = Busy::class; // it is there, and not shown yet
        }
        $fields = is_array($this->error['fields'] ?? null) ? array_values($this->error['fields']) : [];
        return new $kind(
            $this->msg,
            $this->code(),
            $this->status,
            $this->requestId(),
            $this->operationId(),
            $fields,
            $this->retryAfterS(),
            checkoutId: is_string($this->error['checkout_id'] ?? null) ? $this->error['checkout_id'] : null,
        );
    }
}
