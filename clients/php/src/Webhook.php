<?php

declare(strict_types=1);

namespace Payrelay;

/** Verifies what Payrelay posts to a shop, as Standard Webhooks defines. */
final class Webhook
{
    private const TOLERANCE_S = 300;

    /**
     * Gives the event of a webhook whose signature is right and whose time is at most five minutes off.
     *
     * @param string|list<string> $secret two, while an endpoint's secret is changed
     * @param array<string, string|list<string>> $headers as they came, such as Laravel's `$request->headers->all()`
     * @param string $body as it came, byte for byte
     * @return array<string, mixed> the event; store its `id` with what you did, because it may come twice
     * @throws WebhookRefused
     */
    public static function verify(string|array $secret, array $headers, string $body, ?int $now = null): array
    {
        $named = [];
        foreach ($headers as $name => $value) {
            $named[strtolower((string) $name)] = is_array($value) ? (string) ($value[0] ?? '') : (string) $value;
        }
        $id = $named['webhook-id'] ?? '';
        $time = $named['webhook-timestamp'] ?? '';
        if ($id === '' || !ctype_digit($time) || strlen($time) > 12) {
            throw new WebhookRefused('a header of the webhook is missing or wrong');
        }
        if (abs(($now ?? time()) - (int) $time) > self::TOLERANCE_S) {
            throw new WebhookRefused('the webhook is too old, or of the future');
        }
        $signatures = explode(' ', $named['webhook-signature'] ?? '');
        foreach ((array) $secret as $each) {
            $expected = self::sign($each, $id, (int) $time, $body);
            foreach ($signatures as $signature) {
                if (hash_equals($expected, $signature)) {
                    return self::event($body);
                }
            }
        }
        throw new WebhookRefused('no signature of the webhook is right');
    }

    /** Signs a body as the standard says. @throws WebhookRefused for a secret that is none */
    public static function sign(string $secret, string $id, int $time, string $body): string
    {
        $text = str_starts_with($secret, 'whsec_') ? substr($secret, 6) : $secret;
        $key = base64_decode($text, true);
        if ($key === false || $key === '') {
            throw new WebhookRefused('the secret is none: it begins with whsec_');
        }
        return 'v1,' . base64_encode(hash_hmac('sha256', "$id.$time.$body", $key, true));
    }

    /** @return array<string, mixed> */
    private static function event(string $body): array
    {
        try {
            $event = ExactJson::decode($body);
        } catch (\JsonException) {
            $event = null;
        }
        if (!is_array($event) || !is_string($event['id'] ?? null) || !is_string($event['type'] ?? null)) {
            throw new WebhookRefused('the body is no event');
        }
        return $event;
    }
}
