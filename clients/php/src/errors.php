<?php

declare(strict_types=1);

namespace Payrelay;

/**
 * The base of all errors. An error of a call that moves money says that this request took no effect.
 *
 * `errorCode` is the service's word, null where it said nothing; `advice` is one sentence on what to do.
 */
class PayrelayError extends \RuntimeException
{
    protected const ADVICE = 'Look at the message.';

    public readonly string $advice;

    /** @param list<array{path: string, msg: string}> $fields the wrong fields of the request */
    final public function __construct(
        string $message,
        public readonly ?string $errorCode = null,
        public readonly ?int $httpStatus = null,
        public readonly ?string $requestId = null,
        public readonly ?string $operationId = null,
        public readonly array $fields = [],
        public readonly ?float $retryAfterS = null,
        ?\Throwable $previous = null,
        public readonly ?string $checkoutId = null,
    ) {
        $this->advice = static::ADVICE;
        parent::__construct($message, 0, $previous);
    }
}

/** The charge was declined, and nothing was taken. */
final class Declined extends PayrelayError
{
    protected const ADVICE = 'Tell the customer; another attempt is allowed: the same call with again: true.';
}

/** The request is wrong, and nothing was done. */
final class InvalidRequest extends PayrelayError
{
    protected const ADVICE = 'Correct the fields that it names.';
}

/** It is paid, captured, refunded or cancelled already, or not eligible. */
final class Conflict extends PayrelayError
{
    protected const ADVICE = 'Look at the order before you do anything.';
}

/** Something else is under way, or there is no room now. */
final class Busy extends PayrelayError
{
    protected const ADVICE = 'Call again after retryAfterS.';
}

/** The credential is unknown, expired or revoked. */
final class Unauthenticated extends PayrelayError
{
    protected const ADVICE = 'Get another credential; this says nothing of an earlier send of the same payment.';
}

/** The credential may not do this. */
final class Forbidden extends PayrelayError
{
    protected const ADVICE = 'Get a credential that may; this says nothing of an earlier send of the same payment.';
}

/** There is nothing of that name or id that the caller may see. */
final class NotFound extends PayrelayError
{
    protected const ADVICE = 'Check the id, the account in the address, and whose it is.';
}

/** The position in the feed is of events that the service has lost. */
final class PositionLost extends PayrelayError
{
    protected const ADVICE = 'Read the feed anew from 0, and skip each id that you know.';
}

/** The payment was asked for with other values before. */
final class KeyReused extends PayrelayError
{
    protected const ADVICE = 'Send the values of the first request, or look at its operation.';
}

/** The service can't do it until an operator has acted. */
final class ServiceFault extends PayrelayError
{
    protected const ADVICE = 'An operator of the service must act; requestId finds it in the log.';
}

/** No answer came, or none that can be read, to a call that moves no money. */
final class NoAnswer extends PayrelayError
{
    protected const ADVICE = 'Call again.';
}

/** The key could not be stored, and so nothing was sent. */
final class StoreFailed extends PayrelayError
{
    protected const ADVICE = 'Mend the store, and call again.';
}

/** A key needs a name that is the same after a crash; nothing was sent. */
final class NameNeeded extends PayrelayError
{
    protected const ADVICE = "Give a name, such as the order's or the return's number.";
}

/** Another attempt was asked for while the last one isn't known to have taken nothing; nothing was sent. */
final class AttemptOpen extends PayrelayError
{
    protected const ADVICE = 'Make the same call without again: it follows the last attempt.';
}

/** An amount is no exact decimal; nothing was sent. */
final class InvalidAmount extends PayrelayError
{
    protected const ADVICE = 'Give a text, such as "345.67".';
}

/** The signature, the time or the form of a webhook is wrong. */
final class WebhookRefused extends PayrelayError
{
    protected const ADVICE = 'Answer 400, and do nothing.';
}

/** The caller ended the call, by throwing this from `onWait`. Where `isOpen` is true, a payment may have been sent. */
final class Stopped extends PayrelayError
{
    protected const ADVICE = 'Where isOpen is true, make the same call later: it follows the payment.';

    public bool $isOpen = false;
}
