"""Amounts as whole cents, and their two forms on the wire."""

from decimal import Decimal

# The gateway's numbers are doubles; below this every amount of cents has an exact and plain decimal form as one.
AMOUNT_CENTS_MAX = 10**14

# Above this power of ten an amount is refused before any arithmetic: a short text can name an endless number.
EXPONENT_MAX = 15

CURRENCIES = frozenset({"LKR", "USD", "GBP", "EUR", "AUD"})

FEE_PER_MILLE = 33  # 3.3 %, as observed


def cents_of(given: object) -> int | None:
    """Return the amount in cents, or None where it is no amount: not a number, not positive, finer than a cent.

    A number and a text of digits are both taken, as the gateway does.
    """
    if isinstance(given, bool) or not isinstance(given, int | str | Decimal):
        return None
    if isinstance(given, str) and not (given.isascii() and given.replace(".", "", 1).isdigit()):
        return None
    amount = Decimal(given)
    if not amount.is_finite() or amount <= 0 or amount.adjusted() > EXPONENT_MAX:
        return None
    cents = amount.scaleb(2)
    if cents != cents.to_integral_value() or cents > AMOUNT_CENTS_MAX:
        return None
    return int(cents)


def text_of(cents: int) -> str:
    """Return the amount with exactly two decimals, the form that is signed."""
    sign, cents = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


def double_of(cents: int) -> float:
    """Return the amount as the gateway's double; exact up to the largest amount."""
    return cents / 100


def fee_of(cents: int) -> int:
    """Return the gateway's fee in cents, rounded half up."""
    return (cents * FEE_PER_MILLE + 500) // 1000
