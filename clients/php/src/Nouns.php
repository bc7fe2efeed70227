<?php

declare(strict_types=1);

namespace Payrelay;

/**
 * What moves money. Every method that moves money gives Done or Open, and throws PayrelayError where it took no effect.
 *
 * `name` is what the payment is called in the store, the same after a crash. `again: true` begins another attempt, where a final
 * answer said that the last one took nothing. Amounts are texts such as "345.67", or ints.
 */
final class Payments
{
    public function __construct(private readonly Sender $sender, private readonly Effects $effects)
    {
    }

    /**
     * Charges an approved card: `customerToken` is a stored customer (`cus_…`) or the gateway's token.
     *
     * @param list<array{name: string, number: string, quantity: int, unit_amount: string|int}>|null $itemList
     */
    public function charge(
        string $orderId,
        string $items,
        string $currency,
        string|int|float $amount,
        ?string $customerToken = null,
        ?string $custom1 = null,
        ?string $custom2 = null,
        ?string $notifyUrl = null,
        ?array $itemList = null,
        ?string $name = null,
        bool $again = false,
        string $type = 'PAYMENT',
    ): Done|Open {
        $request = Request::post('/payments/charge', [
            'type' => $type, 'order_id' => $orderId, 'items' => $items, 'currency' => $currency,
            'amount' => Amount::of($amount), 'customer_token' => $customerToken, 'custom_1' => $custom1,
            'custom_2' => $custom2, 'notify_url' => $notifyUrl, 'itemList' => self::entries($itemList),
        ]);
        return $this->effects->carryOut('charge', $request, $name ?? $orderId, $again);
    }

    /**
     * Authorizes an amount on an approved card, for a later capture by its `authorization_token`.
     *
     * @param list<array{name: string, number: string, quantity: int, unit_amount: string|int}>|null $itemList
     */
    public function authorize(
        string $orderId,
        string $items,
        string $currency,
        string|int|float $amount,
        ?string $customerToken = null,
        ?string $custom1 = null,
        ?string $custom2 = null,
        ?string $notifyUrl = null,
        ?array $itemList = null,
        ?string $name = null,
        bool $again = false,
    ): Done|Open {
        return $this->charge(
            $orderId, $items, $currency, $amount, $customerToken, $custom1, $custom2, $notifyUrl, $itemList, $name, $again,
            'AUTHORIZE',
        );
    }

    /** Captures an authorized amount, or a part of it. With a store it needs a name, such as the order's id. */
    public function capture(
        string $authorizationToken,
        string|int|float $amount,
        string $description,
        ?string $name = null,
        bool $again = false,
    ): Done|Open {
        $request = Request::post('/payments/capture', [
            'authorization_token' => $authorizationToken, 'amount' => Amount::of($amount), 'description' => $description,
        ]);
        return $this->effects->carryOut('capture', $request, $name, $again);
    }

    /**
     * Refunds all that is left of a payment, or a part of it. With a store a part needs a name, such as the return's number.
     * Without a store two equal parts within the service's repeat window (24 hours) are one refund.
     */
    public function refund(
        string $paymentId,
        string $description,
        string|int|float|null $amount = null,
        ?string $name = null,
        bool $again = false,
    ): Done|Open {
        $request = Request::post('/payments/refund', [
            'payment_id' => $paymentId, 'description' => $description, 'amount' => Amount::orNull($amount),
        ]);
        $named = $name ?? ($amount === null ? $paymentId : null);
        return self::numbered($this->effects->carryOut('refund', $request, $named, $again));
    }

    /** Voids an authorization, so that nothing is captured. With a store it needs a name. */
    public function void(string $authorizationToken, string $description, ?string $name = null, bool $again = false): Done|Open
    {
        $members = ['authorization_token' => $authorizationToken, 'description' => $description];
        $request = Request::post('/payments/refund', $members);
        return self::numbered($this->effects->carryOut('void', $request, $name, $again));
    }

    /**
     * Gives the successful payments of an order; with `noCache` the gateway is asked anew. `missing` names payments that took
     * money and that the gateway doesn't show yet. Where it shows none at all, and some took money, this throws Busy: the
     * order isn't unpaid.
     */
    public function ofOrder(string $orderId, bool $noCache = false): PaymentList
    {
        $headers = $noCache ? ['Cache-Control' => 'no-cache'] : [];
        $request = new Request('GET', '/payments/' . rawurlencode($orderId), headers: $headers);
        $got = $this->sender->send($request, new Budget($this->sender->limits));
        // An order without payments is 404 with an empty list.
        return $got->status === 200 || $got->isEmptyList() ? PaymentList::of($got) : throw $got->error();
    }

    /** A refund's number is a text. */
    private static function numbered(Done|Open $outcome): Done|Open
    {
        return $outcome instanceof Done && is_int($outcome->data)
            ? new Done((string) $outcome->data, $outcome->operationId, $outcome->isReplay, $outcome->requestId) : $outcome;
    }

    /**
     * @param list<array<string, mixed>>|null $items
     * @return list<array<string, mixed>>|null
     * @internal
     */
    public static function entries(?array $items): ?array
    {
        return $items === null ? null : array_map(
            static fn (array $each) => ['unit_amount' => Amount::of($each['unit_amount'] ?? null, 'unit_amount')] + $each,
            array_values($items),
        );
    }
}

/**
 * Payments as the gateway records them, to be counted, gone through and read by their place as an array is.
 *
 * @implements \IteratorAggregate<int, array<string, mixed>>
 * @implements \ArrayAccess<int, array<string, mixed>>
 */
final class PaymentList implements \ArrayAccess, \Countable, \IteratorAggregate, \JsonSerializable
{
    /**
     * @param list<array<string, mixed>> $payments
     * @param list<string> $missing the ids of payments that took money, and that the gateway's record doesn't show yet
     */
    private function __construct(public readonly array $payments, public readonly array $missing)
    {
    }

    /**
     * @param list<array<string, mixed>>|null $payments in place of the answer's data
     * @internal
     */
    public static function of(Reply $got, ?array $payments = null): self
    {
        return new self($payments ?? $got->data, $got->missing());
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->payments);
    }

    public function count(): int
    {
        return count($this->payments);
    }

    public function offsetExists(mixed $offset): bool
    {
        return isset($this->payments[$offset]);
    }

    public function offsetGet(mixed $offset): mixed
    {
        return $this->payments[$offset];
    }

    public function offsetSet(mixed $offset, mixed $value): void
    {
        throw new \LogicException('payments are not changed');
    }

    public function offsetUnset(mixed $offset): void
    {
        throw new \LogicException('payments are not changed');
    }

    /** @return list<array<string, mixed>> */
    public function jsonSerialize(): array
    {
        return $this->payments;
    }
}

/** Subscriptions, as the gateway has them. */
final class Subscriptions
{
    public function __construct(private readonly Sender $sender, private readonly Effects $effects)
    {
    }

    /** @return list<array<string, mixed>> */
    public function list(bool $noCache = false): array
    {
        return $this->read('', [], $noCache)->data;
    }

    /** @return array<string, mixed> with its `payments`, a PaymentList, where they are wanted */
    public function show(string $subscriptionId, bool $withPayments = false, bool $noCache = false): array
    {
        $query = $withPayments ? ['expand' => 'payments'] : [];
        $got = $this->read('/' . rawurlencode($subscriptionId), $query, $noCache);
        $payments = $withPayments ? ['payments' => PaymentList::of($got, $got->data['payments'] ?? [])] : [];
        return $payments + $got->data;
    }

    /** Gives the payments of a subscription; `missing` and Busy are as for the payments of an order. */
    public function payments(string $subscriptionId, bool $noCache = false): PaymentList
    {
        return PaymentList::of($this->read('/' . rawurlencode($subscriptionId) . '/payments', [], $noCache));
    }

    /** Charges the failed installment of a subscription. With a store it needs a name, such as the month's. */
    public function retry(string $subscriptionId, ?string $name = null, bool $again = false): Done|Open
    {
        $request = new Request('POST', '/subscriptions/' . rawurlencode($subscriptionId) . '/retry');
        return $this->effects->carryOut('retry', $request, $name, $again);
    }

    /** Cancels a subscription. By default its name is the subscription's id. */
    public function cancel(string $subscriptionId, ?string $name = null): Done|Open
    {
        $request = new Request('DELETE', '/subscriptions/' . rawurlencode($subscriptionId));
        return $this->effects->carryOut('cancel', $request, $name ?? $subscriptionId, false);
    }

    /** @param array<string, string> $query */
    private function read(string $path, array $query, bool $noCache): Reply
    {
        $headers = $noCache ? ['Cache-Control' => 'no-cache'] : [];
        $request = new Request('GET', "/subscriptions$path", $query, headers: $headers);
        $got = $this->sender->send($request, new Budget($this->sender->limits));
        return $got->status === 200 || $got->isEmptyList() ? $got : throw $got->error();
    }
}

/** What Payrelay knows of the money of orders, without asking the gateway. */
final class Orders
{
    public function __construct(private readonly Sender $sender)
    {
    }

    /**
     * Gives the balance of an order, with its payments, operations and pages. Look at `is_certain` before you decide by a figure.
     *
     * @return array<string, mixed>
     * @throws NotFound where nothing is known of the order
     */
    public function show(string $orderId): array
    {
        return $this->sender->ask(new Request('GET', '/orders/' . rawurlencode($orderId)))->data;
    }
}

/** What Payrelay knows of subscriptions, without asking the gateway. */
final class SubscriptionStates
{
    public function __construct(private readonly Sender $sender)
    {
    }

    /** @return \Generator<int, array<string, mixed>> all known states, page by page */
    public function list(?int $limit = null): \Generator
    {
        return $this->sender->pages(new Request('GET', '/subscription-states', ['limit' => $limit]));
    }

    /** @return array<string, mixed> */
    public function show(string $subscriptionId): array
    {
        return $this->sender->ask(new Request('GET', '/subscription-states/' . rawurlencode($subscriptionId)))->data;
    }
}

/** Pages on which a customer pays, approves a card, subscribes or authorizes an amount. */
final class Checkouts
{
    public function __construct(private readonly Sender $sender, private readonly Effects $effects)
    {
    }

    /**
     * Opens a page; lead the customer to its `url`. An order has one at a time: the same call gives the same page again.
     *
     * @param array<string, mixed> $body as the API has it: type, order_id, items, currency, customer, amount, …
     * @return array<string, mixed> the page, with `id`, `url` and `state`
     */
    public function open(array $body, ?string $name = null, bool $again = false): array
    {
        foreach (['amount', 'startup_fee'] as $money) {
            if (isset($body[$money])) {
                $body[$money] = Amount::of($body[$money], $money);
            }
        }
        if (isset($body['itemList'])) {
            $body['itemList'] = Payments::entries($body['itemList']);
        }
        $named = $name ?? (string) ($body['order_id'] ?? '');
        return $this->effects->openCheckout(Request::post('/checkouts', $body), $named, $again);
    }

    /** @return array<string, mixed> a page, as far as its outcome is known now */
    public function show(string $checkoutId): array
    {
        return $this->sender->ask(new Request('GET', '/checkouts/' . rawurlencode($checkoutId)))->data;
    }

    /**
     * Closes a page, so that its order is free for another one; may be repeated. Where `may_still_be_paid` is true, a form of
     * it is out, and a later payment completes it.
     *
     * @return array<string, mixed>
     * @throws Conflict where it was paid or held
     */
    public function close(string $checkoutId): array
    {
        return $this->sender->ask(new Request('DELETE', '/checkouts/' . rawurlencode($checkoutId)))->data;
    }
}

/** Customers whose approved cards are stored. */
final class Customers
{
    public function __construct(private readonly Sender $sender)
    {
    }

    /** @return \Generator<int, array<string, mixed>> newest first, page by page */
    public function list(?string $reference = null, ?string $state = null, ?int $limit = null): \Generator
    {
        $query = ['reference' => $reference, 'state' => $state, 'limit' => $limit];
        return $this->sender->pages(new Request('GET', '/customers', $query));
    }

    /** @return array<string, mixed> */
    public function show(string $customerId): array
    {
        return $this->sender->ask(new Request('GET', '/customers/' . rawurlencode($customerId)))->data;
    }

    /**
     * Stores a customer by a gateway's token that you have already; the same token gives the same customer.
     *
     * @param array<string, string|null> $body customer_token, and reference, label, method, card_no_masked, card_expiry, card_holder
     * @return array<string, mixed>
     */
    public function store(array $body): array
    {
        return $this->sender->ask(Request::post('/customers', $body, isOnce: true))->data;
    }

    /**
     * Gives a customer another reference or label; null removes one.
     *
     * @param array{reference?: string|null, label?: string|null} $changes
     * @return array<string, mixed>
     */
    public function change(string $customerId, array $changes): array
    {
        $request = new Request('PATCH', '/customers/' . rawurlencode($customerId), body: ExactJson::encode($changes));
        return $this->sender->ask($request)->data;
    }

    /** Removes a customer, and destroys its token. @return array<string, mixed> */
    public function remove(string $customerId): array
    {
        return $this->sender->ask(new Request('DELETE', '/customers/' . rawurlencode($customerId)))->data;
    }

    /** Erases the personal data of a customer; may be repeated. @return array<string, mixed> */
    public function erase(string $customerId): array
    {
        return $this->sender->ask(new Request('POST', '/customers/' . rawurlencode($customerId) . '/erase'))->data;
    }
}

/** What was asked of the gateway, and what became of it. */
final class Operations
{
    public function __construct(private readonly Sender $sender, private readonly Follower $follower)
    {
    }

    /**
     * @param array<string, string> $filter state, kind, order_id, payment_id, subscription_id, customer_id
     * @return \Generator<int, array<string, mixed>> newest first, page by page
     */
    public function list(array $filter = [], ?int $limit = null): \Generator
    {
        return $this->sender->pages(new Request('GET', '/operations', $filter + ['limit' => $limit]));
    }

    /** @return array<string, mixed> an operation with its history */
    public function show(string $operationId): array
    {
        return $this->sender->ask(new Request('GET', '/operations/' . rawurlencode($operationId)))->data;
    }

    /** @return array<string, mixed> the newest operation under an Idempotency-Key */
    public function byKey(string $key): array
    {
        return $this->sender->ask(new Request('GET', '/operations/by-key/' . rawurlencode($key)))->data;
    }

    /**
     * Gives the operation once it is final or a person must decide it; Busy is thrown where neither comes within the limits.
     *
     * @param 'wait'|'poll'|'stream' $by
     * @return array<string, mixed>
     */
    public function follow(string $operationId, string $by = 'wait'): array
    {
        $end = $this->follower->follow($operationId, new Budget($this->sender->limits), $by);
        if ($end->status === 200 && !Follower::hasEnded($end)) {
            throw new Busy("the operation isn't final yet", 'in_progress', operationId: $operationId);
        }
        return $end->status === 200 ? $end->data : throw $end->error();
    }
}

/** Whether the service lost commits of its database. */
final class Recovery
{
    public function __construct(private readonly Sender $sender)
    {
    }

    /** @return array<string, mixed> */
    public function show(): array
    {
        return $this->sender->ask(new Request('GET', '/recovery'))->data;
    }

    /** Says that every request of the lost time that got no answer was repeated, or never will be. @return array<string, mixed> */
    public function acknowledge(int $incarnation): array
    {
        return $this->sender->ask(Request::post('/recovery/acknowledgement', ['incarnation' => $incarnation]))->data;
    }
}

/** What a server gives an app, so that it can pay one order and do nothing else. */
final class ClientTokens
{
    public function __construct(private readonly Sender $sender)
    {
    }

    /**
     * Issues a token for a customer, an order, or both; an amount of "open" lets the app choose it.
     *
     * @param array<string, mixed> $body customer_id, order_id, type, amount, currency, scopes, expires_in_s, …
     * @return array<string, mixed> with `token`, this once
     */
    public function issue(array $body): array
    {
        foreach (['amount', 'amount_max', 'startup_fee'] as $money) {
            if (isset($body[$money]) && $body[$money] !== 'open') {
                $body[$money] = Amount::of($body[$money], $money);
            }
        }
        return $this->sender->ask(Request::post('/client-tokens', $body))->data;
    }

    /** @return \Generator<int, array<string, mixed>> those that have not expired, newest first, page by page */
    public function list(?string $customerId = null, ?int $limit = null): \Generator
    {
        return $this->sender->pages(new Request('GET', '/client-tokens', ['customer_id' => $customerId, 'limit' => $limit]));
    }

    public function revoke(string $tokenId): void
    {
        $this->sender->ask(new Request('DELETE', '/client-tokens/' . rawurlencode($tokenId)));
    }

    /** Revokes the tokens of a customer, those that a key issued, or all; gives how many. */
    public function revokeAll(?string $customerId = null, ?string $credentialId = null): int
    {
        $query = ['customer_id' => $customerId, 'credential_id' => $credentialId];
        return (int) ($this->sender->ask(new Request('DELETE', '/client-tokens', $query))->data['revoked'] ?? 0);
    }
}

/** What happened, as it is told. */
final class Events
{
    public function __construct(private readonly Sender $sender, private readonly Follower $follower)
    {
    }

    /**
     * Gives some events after a position, and `next`. `waitS` holds an empty page until there is an event.
     *
     * @return array{events: list<array<string, mixed>>, next: int}
     */
    public function page(
        int $after = 0,
        ?string $type = null,
        ?string $subject = null,
        ?int $limit = null,
        int $waitS = 0,
    ): array {
        $query = ['after' => $after, 'type' => $type, 'subject' => $subject, 'limit' => $limit];
        $headers = $waitS > 0 ? ['Prefer' => "wait=$waitS"] : [];
        return $this->sender->ask(new Request('GET', '/events', $query, headers: $headers))->data;
    }

    /** @return \Generator<int, array<string, mixed>> all events after a position, oldest first, until there are no more now */
    public function list(int $after = 0, ?string $type = null, ?string $subject = null, ?int $limit = null): \Generator
    {
        while (true) {
            $page = $this->page($after, $type, $subject, $limit);
            foreach ($page['events'] ?? [] as $event) {
                yield $event;
            }
            if (($page['next'] ?? 0) <= $after) {
                return;
            }
            $after = $page['next'];
        }
    }

    /**
     * Gives the events of an operation or a checkout as they come (`operation:op_…`, `checkout:chk_…`), within the limits of a call.
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function follow(string $subject, ?int $after = null): \Generator
    {
        return $this->follower->events($subject, new Budget($this->sender->limits), $after);
    }
}

/** Addresses to which events are sent. */
final class Endpoints
{
    public function __construct(private readonly Sender $sender)
    {
    }

    /**
     * Registers an address; its `secret` is shown this once. After NoAnswer list the endpoints: a repeat would register two.
     *
     * @param list<string>|null $types
     * @return array<string, mixed>
     */
    public function register(string $url, ?array $types = null, ?string $label = null): array
    {
        $body = ['url' => $url, 'types' => $types, 'label' => $label];
        return $this->sender->ask(Request::post('/endpoints', $body, isOnce: true))->data;
    }

    /** @return list<array<string, mixed>> */
    public function list(): array
    {
        return $this->sender->ask(new Request('GET', '/endpoints'))->data;
    }

    /** @return array<string, mixed> */
    public function show(string $endpointId): array
    {
        return $this->sender->ask(new Request('GET', '/endpoints/' . rawurlencode($endpointId)))->data;
    }

    /**
     * Changes, pauses, stops or starts an endpoint.
     *
     * @param array{url?: string, types?: list<string>, label?: string|null, state?: 'active'|'paused'|'stopped'} $changes
     * @return array<string, mixed>
     */
    public function change(string $endpointId, array $changes): array
    {
        $request = new Request('PATCH', '/endpoints/' . rawurlencode($endpointId), body: ExactJson::encode($changes));
        return $this->sender->ask($request)->data;
    }

    public function remove(string $endpointId): void
    {
        $this->sender->ask(new Request('DELETE', '/endpoints/' . rawurlencode($endpointId)));
    }

    /** Gives an endpoint a new secret; the old one stays valid for a day. @return array<string, mixed> */
    public function rotate(string $endpointId): array
    {
        return $this->sender->ask($this->once($endpointId, 'rotate'))->data;
    }

    /** Sends a test event; gives its id. */
    public function test(string $endpointId): string
    {
        return (string) ($this->sender->ask($this->once($endpointId, 'test'))->data['event_id'] ?? '');
    }

    /**
     * Sends events again: those with these ids, or all of a span of time (RFC 3339).
     *
     * @param array{ids?: list<string>, since?: string, until?: string} $which
     * @return array<string, mixed> with `events`, and `after` where there are more
     */
    public function replay(string $endpointId, array $which, ?int $after = null): array
    {
        $path = '/endpoints/' . rawurlencode($endpointId) . '/replay';
        $request = new Request('POST', $path, ['after' => $after], ExactJson::encode($which), isOnce: true);
        return $this->sender->ask($request)->data;
    }

    /** @return \Generator<int, array<string, mixed>> the deliveries, newest first, page by page */
    public function deliveries(string $endpointId, ?string $state = null, ?int $limit = null): \Generator
    {
        $before = null;
        do {
            $query = ['state' => $state, 'limit' => $limit, 'before' => $before];
            $page = $this->sender->ask(new Request('GET', '/endpoints/' . rawurlencode($endpointId) . '/deliveries', $query))->data;
            foreach ($page as $delivery) {
                yield $delivery;
                $before = $delivery['position'] ?? null;
            }
        } while ($page !== [] && $before !== null);
    }

    private function once(string $endpointId, string $verb): Request
    {
        return new Request('POST', '/endpoints/' . rawurlencode($endpointId) . "/$verb", isOnce: true);
    }
}
