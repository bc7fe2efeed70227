"""Reads a statement's file by a profile: each line as one of ours, or refused with its number and the reason.

Rules:

1. A refused line is never guessed at, and never keeps another line from being read.
2. A line without a name of its own is known by its day, its amount, and how many equal ones came before it in the
   file. So a file that is fed again has the same lines, and two equal lines of one file are two.
3. The file is read line by line: nothing grows with it but what rule 2 counts.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from payrelay.core.money import AmountError, decimal_text, minor_units
from payrelay.core.payments.payment import payment_number
from payrelay.core.reconciliation.entries import LineState, Movement, StatementLine, Zone
from payrelay.core.reconciliation.files.profiles import NEEDED, Profile
from payrelay.core.reconciliation.table_text import TableError, is_currency, moment_in, rows_of

REFUSED_MAX: Final = 100
"""Refused lines that are told of one file; all are counted."""
LENGTH_MAX: Final = 250
"""Characters of an id in a statement."""
_ID_DIGITS: Final = 16
_GIVEN_BACK: Final = frozenset({Movement.REFUND, Movement.CHARGEBACK})
HEADER_WITHIN: Final = 30
"""Rows in which the header must be: banks write the account and the period above it."""
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_GROUPED: Final = r"\d{{1,3}}(?:{marks}\d{{2,3}})*{marks}\d{{3}}"
"""Digits with marks between them: the last group has three, and those before have two in some countries. Anything else
may be a decimal mark that the profile takes for one of thousands, and so a hundred times the amount."""
_OTHER_DELIMITERS: Final = ";,\t|"
_TIME_MARKS: Final = ("%H", "%I", "%c", "%X", "%s")


class StatementUnreadableError(ValueError):
    """Nothing of the file can be read; the text says why, with the line."""


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that was not read."""

    number: int
    reason: str


class PassedOver(msgspec.Struct, frozen=True):
    """A line that is none of those that the profile is for."""

    number: int


class TotalLine(msgspec.Struct, frozen=True):
    """The sum that the file itself says, in hundredths."""

    number: int
    total_minor: int


Read: TypeAlias = StatementLine | RefusedLine | PassedOver | TotalLine


class FileSummary(msgspec.Struct, kw_only=True):
    """What a file came to.

    Attributes:
        lines: how many lines were read, by movement and currency.
        sums_minor: their amounts, in hundredths.
        refused_count, refused: how many lines were refused, and the first of them.
        passed_over: lines of something else.
        first_day, last_day: of all lines.
        said_minor: the sum that the file itself says; None where it says none.
    """

    lines: dict[str, int] = {}
    sums_minor: dict[str, int] = {}
    refused_count: int = 0
    refused: list[RefusedLine] = []
    passed_over: int = 0
    first_day: date | None = None
    last_day: date | None = None
    said_minor: int | None = None

    def add(self, read: Read) -> None:
        """Adds what one line came to."""
        if isinstance(read, StatementLine):
            name = f"{read.movement} {read.currency}"
            self.lines[name] = self.lines.get(name, 0) + 1
            self.sums_minor[name] = self.sums_minor.get(name, 0) + read.amount_minor
            self.first_day = read.day if self.first_day is None else min(self.first_day, read.day)
            self.last_day = read.day if self.last_day is None else max(self.last_day, read.day)
        elif isinstance(read, RefusedLine):
            self.refused_count += 1
            if len(self.refused) < REFUSED_MAX:
                self.refused.append(read)
        elif isinstance(read, TotalLine):
            self.said_minor = read.total_minor
        else:
            self.passed_over += 1

    @property
    def count(self) -> int:
        """How many lines were read."""
        return sum(self.lines.values())

    def problem_with_total(self, said_minor: int | None = None, said_count: int | None = None) -> str | None:
        """Compares the lines with the sum and the number that a person, or the file, says; None where they agree.

        Sums are compared over all lines, whose currency must then be one.
        """
        total, wanted = sum(self.sums_minor.values()), self.said_minor if said_minor is None else said_minor
        if wanted is not None and len(self.sums_minor) > 1:
            return f"the lines are of several kinds ({', '.join(sorted(self.sums_minor))}), which have no sum together"
        if wanted is not None and wanted != total:
            return f"the lines come to {decimal_text(total)}, and {decimal_text(wanted)} was said"
        if said_count is not None and said_count != self.count:
            return f"{self.count} lines were read, and {said_count} were said"
        return None


def read_statement(text: Iterable[str], profile: Profile, *, zone: Zone, gateway_zone: str) -> Iterator[Read]:
    """Reads a file line by line; ``text`` gives its lines with their ends. Raises StatementUnreadableError.

    ``zone`` decides the day of a line with a time. Dates without a zone are in the profile's, or ``gateway_zone``.
    """
    reader: _Reader | None = None
    above: list[tuple[int, list[str]]] = []
    try:
        for number, row in rows_of(text, delimiter=profile.delimiter):
            if reader is not None:
                yield reader.read(number, row)
            elif _missing(row, profile):
                above.append((number, row))
                if len(above) == HEADER_WITHIN:
                    break
            else:
                reader = _Reader(profile, _places(row, number, profile), zone, profile.timezone or gateway_zone)
    except TableError as error:
        raise StatementUnreadableError(str(error)) from None
    if reader is None:
        raise StatementUnreadableError(_why_no_header(above, profile) if above else "the file is empty")


def _missing(row: list[str], profile: Profile) -> list[str]:
    names = [each.casefold() for each in row]
    return [name for name in profile.columns.named().values() if name not in names]


def _why_no_header(rows: list[tuple[int, list[str]]], profile: Profile) -> str:
    """Says what the likeliest header lacks: the row that names most of the columns, of equal ones the first."""
    wanted = profile.columns.named().values()
    number, row = max(rows, key=lambda each: sum(name in " ".join(each[1]).casefold() for name in wanted))
    why = f"line {number}: the header lacks {', '.join(_missing(row, profile))}; it has {', '.join(row).casefold()}"
    others = [mark for mark in _OTHER_DELIMITERS if mark != profile.delimiter and mark in row[0]]
    return f"{why}; is its delimiter {others[0]!r}?" if len(row) == 1 and others else why


def _places(header: list[str], number: int, profile: Profile) -> dict[str, int]:
    names = [each.casefold() for each in header]
    wanted = profile.columns.named()
    twice = sorted({name for name in wanted.values() if names.count(name) > 1})
    if twice:
        raise StatementUnreadableError(f"line {number}: the header has {', '.join(twice)} twice")
    return {ours: names.index(theirs) for ours, theirs in wanted.items()}


class _Reader:
    """Reads the rows of one file."""

    def __init__(self, profile: Profile, places: Mapping[str, int], zone: Zone, timezone: str) -> None:
        self._profile = profile
        self._places = places
        self._zone = zone
        self._timezone = timezone
        self._equal: Counter[str] = Counter()
        marks = f"[{re.escape(profile.thousands)}]" if profile.thousands else "(?!)"
        self._marks = re.compile(marks)
        self._grouped = re.compile(_GROUPED.format(marks=marks), re.ASCII)

    def read(self, number: int, row: list[str]) -> Read:
        """Reads one row."""
        profile = self._profile
        if profile.total is not None and row[0].casefold() == profile.total.casefold():
            return self._total(number, row)
        if row[0].lower() in profile.skipped:
            return PassedOver(number)
        if len(row) <= max(self._places.values()):
            return RefusedLine(number, f"has {len(row)} fields, and the header names more")
        fields = {name: row[place] for name, place in self._places.items()}
        if profile.only is not None and profile.only.casefold() not in fields["text"].casefold():
            return PassedOver(number)
        word = fields.get("movement", "").lower()
        if word in profile.skipped:
            return PassedOver(number)
        try:
            return self._line(number, profile.movements.get(word, profile.movement), fields)
        except _FieldError as error:
            return RefusedLine(number, str(error))

    def _total(self, number: int, row: list[str]) -> Read:
        place = self._places["amount"]
        try:
            return TotalLine(number, self._amount("amount", row[place] if place < len(row) else "", may_be_0=True) or 0)
        except _FieldError as error:
            return RefusedLine(number, f"the sum: {error}")

    def _line(self, number: int, movement: Movement, fields: Mapping[str, str]) -> StatementLine:
        profile = self._profile
        for name in (*NEEDED[movement], "date", "amount"):
            if not fields[name]:
                raise _FieldError(f"{name}: is missing")
        currency = fields.get("currency") or profile.currency or ""
        if not is_currency(currency):
            raise _FieldError("currency: must be three capital letters, such as LKR")
        amount_minor = self._amount("amount", fields["amount"]) or 0
        if movement not in _GIVEN_BACK and fields["amount"].startswith(("-", "(")):
            raise _FieldError(f"amount: is negative, and no {movement} is; the profile must say what such a line is")
        day, at_ms = self._moment(fields["date"])
        ids = {name: _id(name, fields.get(name, "")) for name in ("payment_id", "order_id", "payout_id", "reference")}
        line = StatementLine(
            movement=movement,
            identity="",
            currency=currency,
            amount_minor=amount_minor,
            day=day,
            state=self._state(fields),
            at_ms=at_ms,
            fee_minor=self._amount("fee", fields.get("fee", ""), may_be_0=True),
            net_minor=self._amount("net", fields.get("net", ""), may_be_0=True),
            expected_fee_minor=self._expected_fee(movement, amount_minor),
            order_id=ids["order_id"],
            payment_id=ids["payment_id"],
            payout_id=ids["payout_id"],
            place=f"line {number}",
        )
        return msgspec.structs.replace(line, identity=self._identity(line, ids["reference"], fields.get("text", "")))

    def _moment(self, text: str) -> tuple[date, int | None]:
        date_format = self._profile.date_format
        at_ms = moment_in(text, self._timezone, date_format)
        if at_ms is None:
            raise _FieldError(f"date: must be in {date_format or 'ISO 8601, such as 2026-11-22 09:41:00'}")
        has_time = (
            len(text) > len("2026-11-22") if date_format is None else any(mark in date_format for mark in _TIME_MARKS)
        )
        return (self._zone.day(at_ms), at_ms) if has_time else (Zone(self._timezone).day(at_ms), None)

    def _state(self, fields: Mapping[str, str]) -> LineState:
        if "state" not in fields:
            return LineState.TAKEN
        return self._profile.states.get(fields["state"].lower(), LineState.OTHER)

    def _expected_fee(self, movement: Movement, amount_minor: int) -> int | None:
        fees = self._profile.fees
        return None if fees is None or movement is not Movement.PAYMENT else fees.of(amount_minor)

    def _amount(self, name: str, text: str, *, may_be_0: bool = False) -> int | None:
        """Reads an amount without its sign, in hundredths; None for an empty text."""
        if not text:
            return None
        plain = text.removeprefix("(").removesuffix(")").lstrip("-+").strip()
        whole, mark, rest = plain.partition(self._profile.decimal)
        whole = self._marks.sub("", whole) if self._grouped.fullmatch(whole) else whole
        plain = f"{whole}.{rest}" if mark else whole
        if _NUMBER.fullmatch(plain) is None:
            raise _FieldError(f"{name}: must be a number, such as 2510.00")
        try:
            return 0 if may_be_0 and Decimal(plain) == 0 else minor_units(Decimal(plain))
        except AmountError as error:
            raise _FieldError(f"{name}: {error}") from None

    def _identity(self, line: StatementLine, reference: str | None, text: str) -> str:
        if line.movement is Movement.PAYMENT and line.payment_id is not None:
            return line.payment_id
        if line.movement is Movement.PAYOUT and line.payout_id is not None:
            return line.payout_id
        if line.movement is Movement.CHARGEBACK and line.payment_id is not None:
            return line.payment_id
        if reference is not None:
            return reference
        what = f"{line.payment_id}/{line.currency}/{line.amount_minor}/{line.at_ms or line.day}/{text}"
        self._equal[what] += 1
        digest = hashlib.sha256(f"{what}/{self._equal[what]}".encode()).hexdigest()[:_ID_DIGITS]
        return f"{line.day}/{digest}"


class _FieldError(ValueError):
    """A field of a line can't be read; the text names it."""


def _id(name: str, text: str) -> str | None:
    if not text:
        return None
    if len(text) > LENGTH_MAX or not text.isprintable():
        raise _FieldError(f"{name}: must be printable, with at most {LENGTH_MAX} characters")
    if name != "payment_id":
        return text
    number = payment_number(text)
    if number is None:
        raise _FieldError("payment_id: must have 1 to 19 digits")
    return number
