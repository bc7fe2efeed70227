"""The sandbox's test cards, and what a payer types about one."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from payrelay_simulator.records import Card, Decline

CardMethod = Literal["VISA", "MASTER", "AMEX"]
WalletMethod = Literal["HELAPAY", "FRIMI", "QPLUS"]

CARD_METHODS: tuple[CardMethod, ...] = ("VISA", "MASTER", "AMEX")
WALLET_METHODS: tuple[WalletMethod, ...] = ("HELAPAY", "FRIMI", "QPLUS")

# Any holder, expiry and security code go with them; None: the card pays.
TEST_CARDS: Mapping[str, tuple[CardMethod, Decline | None]] = {
    "4916217501611292": ("VISA", None),
    "5307732125531191": ("MASTER", None),
    "346781005510225": ("AMEX", None),
    "4024007194349121": ("VISA", "insufficient_funds"),
    "5459051433777487": ("MASTER", "insufficient_funds"),
    "370787711978928": ("AMEX", "insufficient_funds"),
    "4929119799365646": ("VISA", "limit_exceeded"),
    "5491182243178283": ("MASTER", "limit_exceeded"),
    "340701811823469": ("AMEX", "limit_exceeded"),
    "4929768900837248": ("VISA", "do_not_honor"),
    "5388172137367973": ("MASTER", "do_not_honor"),
    "374664175202812": ("AMEX", "do_not_honor"),
    "4024007120869333": ("VISA", "network_error"),
    "5237980565185003": ("MASTER", "network_error"),
    "373433500205887": ("AMEX", "network_error"),
}

# What card numbers of each kind begin with; a number of none of them is told so before anything is tried.
BEGINNINGS: Mapping[CardMethod, re.Pattern[str]] = {
    "VISA": re.compile(r"4"),
    "MASTER": re.compile(r"5[1-5]|2[2-7]"),
    "AMEX": re.compile(r"3[47]"),
}

HOLDER_LENGTH_MAX = 100

_NUMBER = re.compile(r"[0-9]{12,19}")
_EXPIRY = re.compile(r"(0[1-9]|1[0-2]) ?/? ?(?:20)?([0-9]{2})")
_SECURITY_CODE = re.compile(r"[0-9]{3,4}")


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What the payer pays with, and why it will be refused, if it will. The number itself is not kept."""

    card: Card
    refusal: str | None = None
    decline: Decline | None = None

    @property
    def is_good(self) -> bool:
        """Whether it pays."""
        return self.refusal is None


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of the page as they came."""

    method: str = ""
    holder_name: str = ""
    number: str = ""
    expiry: str = ""
    security_code: str = ""


def means_of(typed: Typed, allowed: tuple[str, ...]) -> Means | dict[str, str]:
    """Return what is paid with, or what is wrong by the name of the input."""
    if typed.method in WALLET_METHODS and typed.method in allowed:
        return Means(card=Card(method=typed.method, holder_name="", last_digits="", expiry=""))
    wrong: dict[str, str] = {}
    if typed.method not in {"", "CARD", *allowed}:
        wrong["method"] = "Choose one of the payment methods."
    holder_name, number = typed.holder_name.strip(), re.sub(r"[ -]", "", typed.number)
    if not 0 < len(holder_name) <= HOLDER_LENGTH_MAX:
        wrong["cardHolderName"] = "Enter the name on the card."
    wanted = tuple(each for each in allowed if typed.method not in allowed or typed.method == each)
    method = _method_of(number)
    if not _NUMBER.fullmatch(number):
        wrong["cardNo"] = "Enter the card number, 12 to 19 digits."
    elif method not in wanted:
        wrong["cardNo"] = f"This is no card of {' or '.join(each for each in wanted if each in CARD_METHODS)}."
    expiry = _EXPIRY.fullmatch(typed.expiry.strip())
    if expiry is None:
        wrong["cardExpiry"] = "Enter month and year, such as 12/29."
    if not _SECURITY_CODE.fullmatch(typed.security_code.strip()):
        wrong["cardSecureId"] = "Enter the three or four digits of the security code."
    if wrong or method is None or expiry is None:
        return wrong
    card = Card(method=method, holder_name=holder_name, last_digits=number[-4:], expiry=expiry[1] + expiry[2])
    _, decline = TEST_CARDS.get(number, (method, None))
    refusal = decline.replace("_", " ") if decline else None if number in TEST_CARDS else "this is no test card"
    return Means(card=card, refusal=refusal, decline=decline)


def _method_of(number: str) -> CardMethod | None:
    return next((method for method, beginning in BEGINNINGS.items() if beginning.match(number)), None)
