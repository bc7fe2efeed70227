<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Http\{JsonResponse, Request, Response};
use Illuminate\Routing\Controller;
use Payrelay\{Done, InvalidRequest, NotFound, Payrelay, Unauthenticated, Webhook};
use Symfony\Component\HttpFoundation\Cookie;

/** The shop's server, as a controller of Laravel: it names orders and prices, and hears what became of them. */
final class ShopController extends Controller
{
    private const NEWS_MAX = 20;

    /**
     * @param array<string, mixed> $shop what is sold, of shop.json
     * @param array{here: array{address: string, simulator: string}, webhook_secret: string, secret: string, data: string} $settings
     */
    public function __construct(private readonly Payrelay $payrelay, private readonly array $shop, private readonly array $settings)
    {
    }

    /** Shows the shop, and remembers who it is. The page may talk to the shop and to Payrelay, and to nobody else. */
    public function page(Request $request): Response
    {
        $address = parse_url($this->settings['here']['address']);
        $origin = "{$address['scheme']}://{$address['host']}" . (isset($address['port']) ? ":{$address['port']}" : '');
        $policy = str_replace('{payrelay}', "$origin {$this->settings['here']['simulator']}", $this->shop['policy']);
        $cookie = Cookie::create('shopper', $request->cookies->get('shopper') ?? bin2hex(random_bytes(16)));
        return (new Response(file_get_contents(__DIR__ . '/../page/index.html')))
            ->header('Content-Security-Policy', $policy)->cookie($cookie);
    }

    /** Tells a phone all that the shop knows of its owner. */
    public function me(Request $request): JsonResponse
    {
        $shopper = $this->shopper($request);
        foreach ($this->payrelay->customers->list(reference: $shopper, state: 'active') as $card) {
            $cards[] = ['id' => $card['id'], 'method' => $card['method'], 'card_no_masked' => $card['card_no_masked']];
        }
        $now = ['shopper' => $shopper, 'cards' => $cards ?? []] + $this->settings['here'] + $this->told($shopper);
        return new JsonResponse($now + array_intersect_key($this->shop, array_flip(['goods', 'club', 'currency'])));
    }

    /** Begins the approval of a card. */
    public function approveCard(Request $request): JsonResponse
    {
        return $this->opened($request, 'card', ['type' => 'preapproval', 'items' => 'Approval of a card']);
    }

    /** Removes a card: nobody can charge it any more. */
    public function removeCard(Request $request, string $card): JsonResponse
    {
        $this->payrelay->customers->remove($this->own($this->shopper($request), $card));
        return new JsonResponse();
    }

    /** Gives the phone what it needs to pay one order by itself; the same press is the same order. */
    public function order(Request $request): JsonResponse
    {
        [$goods, $shopper] = [(string) $request->json('goods'), $this->shopper($request)];
        $sold = $this->shop['goods'][$goods] ?? throw new NotFound('We have no such goods.', httpStatus: 404);
        $terms = ['order_id' => $this->orderId($request, $goods), 'amount' => $sold['amount'], 'currency' => $this->shop['currency']];
        $card = $this->own($shopper, (string) $request->json('card'));
        $bounds = $terms + ['customer_id' => $card, 'scopes' => $this->shop['scopes']];
        $charge = $terms + ['type' => 'PAYMENT', 'items' => $sold['items'], 'customer_token' => $card];
        return new JsonResponse(['token' => $this->payrelay->clientTokens->issue($bounds)['token'], 'charge' => $charge]);
    }

    /** Begins a subscription, which the customer pays on the gateway's page for the first time. */
    public function joinClub(Request $request): JsonResponse
    {
        return $this->opened($request, 'club', ['type' => 'recurring'] + $this->shop['club']);
    }

    /** Ends the shopper's subscriptions; 202 where nobody knows yet whether one has ended. */
    public function leaveClub(Request $request): JsonResponse
    {
        $isDone = true;
        foreach (array_keys(array_filter((array) $this->told($this->shopper($request))['clubs'])) as $club) {
            $isDone = $this->payrelay->subscriptions->cancel((string) $club) instanceof Done && $isDone;
        }
        return new JsonResponse(status: $isDone ? 200 : 202);
    }

    /** Hears what happened. Goods go out once, and only for their price; what was stopped stays so, in any order. */
    public function takeNews(Request $request): Response
    {
        $event = Webhook::verify($this->settings['webhook_secret'], $request->headers->all(), $request->getContent());
        if (preg_match('/^([a-z]+)-([0-9a-f]{16})-[a-z0-9]{12}$/D', (string) ($event['data']['order_id'] ?? ''), $named) === 1) {
            $this->told($named[2], function (array $now) use ($event, $named, &$first): array {
                [$data, $sold] = [$event['data'], $this->shop['goods'][$named[1]] ?? $this->shop['club']];
                [$place, $name, $isDue] = $this->shop['events'][trim("{$event['type']} " . ($data['kind'] ?? ''))] ?? [null, '', false];
                $paid = [$data['payment_amount'] ?? $data['amount'] ?? null, $data['currency'] ?? null];
                if (isset($data[$name]) && (!$isDue || $paid === [$sold['amount'], $this->shop['currency']])) {
                    $first = $isDue && !isset($now[$place][$data[$name]]) ? $data[$name] : null;
                    $now[$place][$data[$name]] = ($now[$place][$data[$name]] ?? true) && $isDue;
                }
                $older = array_filter($now['news'], static fn (array $each) => $each['id'] !== $event['id']);
                return ['news' => [...array_slice($older, -self::NEWS_MAX), $event]] + $now;
            });
            isset($first) && error_log("hand over $first"); // here a real shop's goods go out
        }
        return new Response(status: 204);
    }

    /** Opens the gateway's page: after a lost answer the same one, after a failed or cancelled one another. */
    private function opened(Request $request, string $what, array $wanted): JsonResponse
    {
        $home = $request->getSchemeAndHttpHost() . '/';
        $who = ['customer' => $this->shop['shopper'], 'customer_reference' => $this->shopper($request)];
        $terms = ['order_id' => $this->orderId($request, $what), 'currency' => $this->shop['currency'], 'return_to' => $home];
        $page = $this->payrelay->checkouts->open($wanted + $who + $terms + ['cancel_to' => $home], again: true);
        return new JsonResponse(['url' => $page['url'], 'state' => $page['state']]);
    }

    /** Gives who asks. The cookie is known to the phone alone, its hash to others too; a real shop has Auth::id(). */
    private function shopper(Request $request): string
    {
        $cookie = $request->cookies->get('shopper') ?? throw new Unauthenticated("Open the shop's page first.", httpStatus: 401);
        return substr(hash_hmac('sha256', (string) $cookie, $this->settings['secret']), 0, 16);
    }

    /** Names an order, the same for the same press: the phone keeps the number. The name says whose it is, and what. */
    private function orderId(Request $request, string $what): string
    {
        $isNumber = preg_match('/^[a-z0-9]{12}$/D', $number = (string) $request->json('number')) === 1;
        return $isNumber ? "$what-{$this->shopper($request)}-$number" : throw new InvalidRequest('Which press is it?', httpStatus: 400);
    }

    /** Refuses another's card: the shop's key reaches every one. */
    private function own(string $shopper, string $card): string
    {
        return $this->payrelay->customers->show($card)['reference'] === $shopper ? $card : throw new NotFound('You have no such card.', httpStatus: 404);
    }

    /** Reads a shopper's news, memberships that go on, and what became of orders; changes them one at a time, whole or not at all. */
    private function told(string $shopper, ?\Closure $change = null): array
    {
        $file = "{$this->settings['data']}/$shopper.json";
        flock($lock = fopen("$file.lock", 'c'), LOCK_EX);
        $now = is_file($file) ? json_decode(file_get_contents($file), true) : ['news' => [], 'clubs' => [], 'handed' => []];
        if ($change !== null) {
            $now = $change($now);
            file_put_contents("$file.new", json_encode($now, JSON_THROW_ON_ERROR));
            rename("$file.new", $file);
        }
        return ['clubs' => (object) $now['clubs'], 'handed' => (object) $now['handed']] + $now;
    }
}
