<?php

declare(strict_types=1);

namespace Payrelay;

/** Calls one account of a Payrelay; its calls are grouped by noun. */
final class Payrelay
{
    public readonly Payments $payments;
    public readonly Orders $orders;
    public readonly Subscriptions $subscriptions;
    public readonly SubscriptionStates $subscriptionStates;
    public readonly Checkouts $checkouts;
    public readonly Customers $customers;
    public readonly Operations $operations;
    public readonly Recovery $recovery;
    public readonly ClientTokens $clientTokens;
    public readonly Events $events;
    public readonly Endpoints $endpoints;

    /**
     * @param string $address of the account's API, such as https://pay.example.com/gateway/api
     * @param string|\Closure(): string $credential a key, a client token, or a function that gives one: after a 401 it is called again
     * @param Store|null $store where keys are stored before a payment is sent; without one no key is sent
     * @param (\Closure(Waiting): void)|null $onWait called before each pause; throw Stopped to end the call
     * @param array<int, mixed> $curl options of curl, such as CURLOPT_PROXY or CURLOPT_CAINFO
     */
    public function __construct(
        string $address,
        string|\Closure $credential,
        ?Store $store = null,
        ?Limits $limits = null,
        ?\Closure $onWait = null,
        array $curl = [],
    ) {
        $segments = array_values(array_filter(explode('/', (string) parse_url($address, PHP_URL_PATH)), strlen(...)));
        if (count($segments) < 2) {
            throw new \InvalidArgumentException("$address is no address of an account's API");
        }
        $sender = new Sender($address, $credential, $limits ?? new Limits(), $onWait, $curl);
        $follower = new Follower($sender);
        $effects = new Effects($sender, $follower, $store, $segments[count($segments) - 2]);
        $this->payments = new Payments($sender, $effects);
        $this->orders = new Orders($sender);
        $this->subscriptions = new Subscriptions($sender, $effects);
        $this->subscriptionStates = new SubscriptionStates($sender);
        $this->checkouts = new Checkouts($sender, $effects);
        $this->customers = new Customers($sender);
        $this->operations = new Operations($sender, $follower);
        $this->recovery = new Recovery($sender);
        $this->clientTokens = new ClientTokens($sender);
        $this->events = new Events($sender, $follower);
        $this->endpoints = new Endpoints($sender);
    }
}
