<?php

declare(strict_types=1);

namespace Payrelay;

/** JSON with exact numbers: PHP would make a float of 345.67. */
final class ExactJson
{
    private const NUMBER_OR_TEXT = '/"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"|-?\d++(?:\.\d++)?+(?:[eE][+-]?\d++)?+/s';
    private const MONEY = [
        'amount' => 1, 'captured_amount' => 1, 'amount_max' => 1, 'startup_fee' => 1, 'unit_amount' => 1, 'gross' => 1,
        'fee' => 1, 'net' => 1, 'unit_price' => 1, 'total_price' => 1,
        'paid' => 1, 'held' => 1, 'given_back' => 1, 'charged_back' => 1, 'left' => 1,
    ];
    private const NUMBERS = ['payment_id' => 1, 'subscription_id' => 1];

    /** Reads JSON: numbers with a point, and those that are too long for an int, become texts. @throws \JsonException */
    public static function decode(string $text): mixed
    {
        $exact = preg_replace_callback(
            self::NUMBER_OR_TEXT,
            static fn (array $found): string => $found[0][0] !== '"' && strpbrk($found[0], '.eE') !== false
                ? '"' . $found[0] . '"' : $found[0],
            $text,
        );
        if ($exact === null) {
            throw new \JsonException('the text can not be read');
        }
        return json_decode($exact, true, 64, JSON_THROW_ON_ERROR | JSON_BIGINT_AS_STRING);
    }

    /** Gives a value of the service's with amounts of two decimals, and numbers of the gateway's as texts. */
    public static function plain(mixed $value, string|int $name = ''): mixed
    {
        if (is_array($value)) {
            $plain = [];
            foreach ($value as $inner => $each) {
                $plain[$inner] = self::plain($each, $inner);
            }
            return $plain;
        }
        if (isset(self::NUMBERS[$name]) && is_int($value)) {
            return (string) $value;
        }
        $isNumber = is_int($value) || (is_string($value) && preg_match('/^-?\d+(\.\d+)?$/D', $value) === 1);
        if (!isset(self::MONEY[$name]) || !$isNumber) {
            return $value;
        }
        [$whole, $part] = explode('.', $value . '.', 3);
        return $whole . '.' . str_pad($part, 2, '0');
    }

    /** Writes a value as JSON; an Amount becomes a number with its own digits. @throws InvalidAmount for a float */
    public static function encode(mixed $value): string
    {
        if ($value instanceof Amount) {
            return $value->digits;
        }
        if (is_float($value)) {
            throw new InvalidAmount("numbers must be exact: write a text, and not the float $value");
        }
        if (!is_array($value)) {
            return json_encode($value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
        }
        $parts = [];
        foreach ($value as $name => $each) {
            $parts[] = (array_is_list($value) ? '' : self::encode((string) $name) . ':') . self::encode($each);
        }
        return $value !== [] && array_is_list($value) ? '[' . implode(',', $parts) . ']' : '{' . implode(',', $parts) . '}';
    }
}

/** An exact amount: its digits, with a point where it has decimals. */
final class Amount
{
    private function __construct(public readonly string $digits)
    {
    }

    /** Makes it of a text such as "345.67", or of an int. @throws InvalidAmount for anything else, a float among it */
    public static function of(mixed $value, string $name = 'amount'): self
    {
        if (is_int($value) || (is_string($value) && preg_match('/^-?\d+(\.\d+)?$/D', $value) === 1)) {
            $text = (string) $value;
            if (preg_match('/\.\d\d\d*[1-9]/', $text) === 1 && preg_match('/\.\d\d?0*$/D', $text) !== 1) {
                throw new InvalidAmount("$name has more than two decimals: $text");
            }
            // JSON has no zeros in front.
            return new self((string) preg_replace('/^(-?)0+(?=\d)/', '$1', $text));
        }
        throw new InvalidAmount("$name must be an exact decimal, such as \"345.67\", and not " . get_debug_type($value));
    }

    /** Makes it of a text or an int; null stays null. @throws InvalidAmount */
    public static function orNull(mixed $value, string $name = 'amount'): ?self
    {
        return $value === null ? null : self::of($value, $name);
    }

    /** Gives an amount in hundredths: 34567 for "345.67". @throws InvalidAmount for parts of a hundredth */
    public static function minorUnits(string|int|float $amount): int
    {
        [$whole, $part] = explode('.', self::of($amount)->digits . '.', 3);
        $part = str_pad(rtrim($part, '0'), 2, '0');
        $hundredths = filter_var(ltrim($whole . $part, '0') ?: '0', FILTER_VALIDATE_INT);
        if (str_starts_with($whole, '-')) {
            $hundredths = filter_var('-' . (ltrim(substr($whole, 1) . $part, '0') ?: '0'), FILTER_VALIDATE_INT);
        }
        if (strlen($part) > 2 || $hundredths === false) {
            throw new InvalidAmount("amount must have at most two decimals, and not $amount");
        }
        return $hundredths;
    }

    /** Gives the amount of so many hundredths: "345.67" for 34567. */
    public static function ofMinorUnits(int $hundredths): string
    {
        $digits = str_pad(ltrim((string) $hundredths, '-'), 3, '0', STR_PAD_LEFT);
        return ($hundredths < 0 ? '-' : '') . substr($digits, 0, -2) . '.' . substr($digits, -2);
    }
}
