"""Profiles: how a file of the gateway's or the bank's names its columns, its dates and its words.

A profile is a small TOML or JSON document. ``BUILT_IN`` has those that come with the program.

A word of a file that its profile doesn't have is never taken for another one. Words are compared as ``folded`` gives
them. So a profile in which two words are equal is refused.
"""

import json
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Final

import msgspec

from payrelay.core.money import MINOR_PER_UNIT, is_currency
from payrelay.core.text.table_text import folded, is_date_format, is_timezone
from payrelay.reconciliation.rules.entries import LineState, Movement

_PERCENT: Final = 100
_FIXED_MAX: Final = 1_000_000
"""Units of the fixed part of a fee: far above any."""
_NO_DELIMITERS: Final = '"\r\n'
DATE_FORMAT_LENGTH_MAX: Final = 100
"""Characters of the form of a date: it is made into an expression for each file."""
NEEDED: Final = {
    Movement.PAYMENT: ("payment_id",),
    Movement.REFUND: ("payment_id",),
    Movement.CHARGEBACK: ("payment_id",),
    Movement.PAYOUT: ("payout_id",),
    Movement.BANK: (),
}
"""The columns without which a line of a movement says nothing, beside its date and its amount."""


class ProfileError(ValueError):
    """The profile can't be used; the text names what is wrong."""


class Columns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The header of each column in the file; compared as words are."""

    date: str
    amount: str
    currency: str | None = None
    payment_id: str | None = None
    order_id: str | None = None
    payout_id: str | None = None
    reference: str | None = None
    """What makes a refund, or a line of the bank's, different from any other one."""
    movement: str | None = None
    state: str | None = None
    fee: str | None = None
    net: str | None = None
    text: str | None = None
    """What the bank writes about a line."""

    def named(self) -> dict[str, str]:
        """Gives the header of each column that the file has, by our word for it."""
        return {name: folded(value) for name, value in msgspec.structs.asdict(self).items() if value is not None}


class FeeRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agreed fee of a payment: a percentage of the amount, rounded half up, and a fixed amount."""

    percent: Decimal
    fixed: Decimal = Decimal(0)

    def of(self, amount_minor: int) -> int:
        """Gives the fee of an amount, in hundredths."""
        fee = amount_minor * self.percent / _PERCENT + self.fixed * MINOR_PER_UNIT
        return int(fee.quantize(Decimal(1), rounding=ROUND_HALF_UP))


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a file is read.

    Attributes:
        name: what it is called.
        movement: what the lines are; with a column ``movement`` the word there says it.
        columns: the headers.
        is_guess: nobody has tried it on a real file yet.
        encoding, delimiter: of the text.
        currency: of all lines, where the file has no such column.
        date_format: as for ``strptime``; None for ISO 8601.
        timezone: of dates without a zone; None for the gateway's.
        thousands, decimal: the marks in an amount; each character of ``thousands`` is one.
        states: our word for each of the file's; without a column ``state`` every line has taken effect.
        movements: our word for each kind of line.
        skipped: kinds of lines that are passed over; also what stands first in such a line.
        only: lines are read only where this is in their ``text``, without regard to case.
        total: the first field of the line with the sum of all amounts; it is compared with the lines.
        fees: the agreed rate; a payment with another fee is a difference.
    """

    name: str
    movement: Movement
    columns: Columns
    is_guess: bool = False
    encoding: str = "utf-8-sig"
    delimiter: Annotated[str, msgspec.Meta(min_length=1, max_length=1)] = ","
    currency: str | None = None
    date_format: Annotated[str, msgspec.Meta(max_length=DATE_FORMAT_LENGTH_MAX)] | None = None
    timezone: str | None = None
    thousands: str = ","
    decimal: Annotated[str, msgspec.Meta(min_length=1, max_length=1)] = "."
    states: dict[str, LineState] = {}
    movements: dict[str, Movement] = {}
    skipped: tuple[str, ...] = ()
    only: str | None = None
    total: str | None = None
    fees: FeeRate | None = None

    @property
    def all_movements(self) -> tuple[Movement, ...]:
        """All movements that its lines may have."""
        return tuple(sorted({self.movement, *self.movements.values()}))


def read_profile(content: bytes, *, is_toml: bool) -> Profile:
    """Reads a profile. Raises ProfileError."""
    try:
        profile: Profile = (msgspec.toml if is_toml else msgspec.json).decode(content, type=Profile)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProfileError(str(error)) from None
    if not is_toml:
        _require_members_once(content)
    _require_columns(profile)
    _require_words(profile)
    _require_forms(profile)
    return profile


def _require_members_once(content: bytes) -> None:
    """Refuses a JSON document that has a member twice, as TOML does by itself."""

    def once(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ProfileError(f"{name} is there twice")
            seen.add(name)

    json.loads(content, object_pairs_hook=once)


def _require_columns(profile: Profile) -> None:
    for movement in profile.all_movements:
        missing = [name for name in NEEDED[movement] if name not in profile.columns.named()]
        if missing:
            raise ProfileError(f"columns: {', '.join(missing)} is needed for a {movement}")
    if profile.columns.currency is None and profile.currency is None:
        raise ProfileError("neither columns.currency nor currency is there: whose money is it?")
    if profile.only is not None and profile.columns.text is None:
        raise ProfileError("only needs columns.text: where is it to be found?")
    for column, words in (("state", "states"), ("movement", "movements")):
        if (getattr(profile.columns, column) is None) != (not getattr(profile, words)):
            raise ProfileError(f"{words} and columns.{column} need each other: a word that isn't there is no guess")


def _require_words(profile: Profile) -> None:
    total = () if profile.total is None else (profile.total,)
    kinds = [*(("movements", each) for each in profile.movements), *(("skipped", each) for each in profile.skipped)]
    _require_different(("states", each) for each in profile.states)
    _require_different([*kinds, *(("total", each) for each in total)])
    if "" in map(folded, (*profile.skipped, *total)):
        raise ProfileError("skipped and total must not be empty: each line without a first field would be left out")


def _require_different(words: Iterable[tuple[str, str]]) -> None:
    """Refuses two words that are compared as one; each has the member that it stands in before it."""
    seen: dict[str, tuple[str, str]] = {}
    for member, word in words:
        other = seen.get(folded(word))
        if other is not None:
            raise ProfileError(f"{other[0]} has {other[1]!r}, and {member} has {word!r}: compared, they are one word")
        seen[folded(word)] = (member, word)


def _require_forms(profile: Profile) -> None:
    """Refuses what would be read otherwise than it was meant, or not at all, in every line."""
    if profile.currency is not None and not is_currency(profile.currency):
        raise ProfileError("currency must be three capital letters, such as LKR")
    if profile.timezone is not None and not is_timezone(profile.timezone):
        raise ProfileError(f"timezone: {profile.timezone!r} is none; it must be such as Asia/Colombo")
    if profile.date_format is not None and not is_date_format(profile.date_format):
        why = "it must name day, month and year once, as %d/%m/%Y does, and the hour as %H, or as %I with %p"
        raise ProfileError(f"date_format: {profile.date_format!r} gives no day: {why}")
    if profile.delimiter in _NO_DELIMITERS:
        raise ProfileError("delimiter must be no quotation mark, and no end of a line")
    if profile.decimal in profile.thousands:
        raise ProfileError("decimal and thousands are the same mark")
    if any(mark.isdecimal() for mark in profile.decimal + profile.thousands):
        raise ProfileError("decimal and thousands are marks, and no digits")
    fees = profile.fees
    if fees is not None and not (fees.percent.is_finite() and 0 <= fees.percent <= _PERCENT):
        raise ProfileError(f"fees.percent must be 0 to {_PERCENT}")
    if fees is not None and not (fees.fixed.is_finite() and 0 <= fees.fixed <= _FIXED_MAX):
        raise ProfileError(f"fees.fixed must be 0 to {_FIXED_MAX}")


_STATES: Final = {
    "received": LineState.TAKEN,
    "captured": LineState.TAKEN,
    "held": LineState.AUTHORIZED,
    "refund requested": LineState.REFUND_UNDER_WAY,
    "refund processing": LineState.REFUND_UNDER_WAY,
    "refunded": LineState.REFUNDED,
    "chargebacked": LineState.CHARGED_BACK,
    "failed": LineState.NOT_TAKEN,
}

BUILT_IN: Final = {
    each.name: each
    for each in (
        Profile(
            name="payments",
            movement=Movement.PAYMENT,
            columns=Columns(
                date="date",
                amount="amount",
                currency="currency",
                payment_id="payment_id",
                order_id="order_id",
                state="status",
            ),
            states=_STATES,
        ),
        Profile(
            name="payhere-portal",
            movement=Movement.PAYMENT,
            is_guess=True,
            columns=Columns(
                date="Date",
                amount="Amount",
                currency="Currency",
                payment_id="Payment ID",
                order_id="Order ID",
                state="Status",
                fee="Fee",
                net="Net",
            ),
            timezone="Asia/Colombo",
            states=_STATES
            | {
                "waiting funds": LineState.REFUND_UNDER_WAY,
                "refund processed": LineState.REFUNDED,
                "charged back": LineState.CHARGED_BACK,
                "success": LineState.TAKEN,
            },
        ),
        Profile(
            name="payouts",
            movement=Movement.PAYOUT,
            columns=Columns(date="date", amount="amount", currency="currency", payout_id="payout_id"),
        ),
        Profile(
            name="bank",
            movement=Movement.BANK,
            columns=Columns(
                date="date",
                amount="amount",
                currency="currency",
                reference="reference",
                text="text",
                payout_id="payout_id",
            ),
        ),
    )
}
"""The profiles that come with the program. The first has the columns of the reports that a recovery reads."""
