"""A customer's browser that doesn't post the form that it was given: what can be edited while the hash stays right.

A form's hash is over merchant, order, amount and currency, one after the other and without separators. Everything else
in a form, and the page that it is posted to, may be edited at will. Of order and amount only the run of their
characters is fixed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from payrelay_simulator.money import cents_of, text_of
from payrelay_simulator.pages.forms import PREAPPROVAL_LKR, Page
from payrelay_simulator.pages.payer import GOOD_CARD, Payer
from payrelay_simulator.pages.visits import Visit
from payrelay_simulator.world import World

Form = Mapping[str, str]
"""The fields of a form, as Payrelay gives them out."""
PLAN_FIELDS: Final = ("recurrence", "duration", "startup_fee", "recurring_start_date")

# The amount as it is signed: no separators, no leading zero, two decimals, and not nothing.
_AMOUNT: Final = re.compile(r"(?:0|[1-9][0-9]{0,11})\.[0-9]{2}")


class Split(NamedTuple):
    """An order and an amount, whose texts make one run of characters."""

    order_id: str
    amount: str


class Posting(NamedTuple):
    """What is posted to which of the gateway's pages; a field may be there twice, and the last one counts then."""

    page: Page
    fields: Sequence[tuple[str, str]]


def split_of(page: Page, form: Form) -> Split:
    """The order and the amount that the hash of a genuine form is over; an approval of nothing is signed over 10.00."""
    if form.get("amount") is None and page == "preapprove":
        return Split(form["order_id"], PREAPPROVAL_LKR)
    fee, amount = form.get("startup_fee", "0"), cents_of(form["amount"]) or 0
    fee_cents = cents_of(fee.removeprefix("-")) or 0
    return Split(form["order_id"], text_of(amount + (-fee_cents if fee.startswith("-") else fee_cents)))


def splits_of(signed: Split) -> Iterator[Split]:
    """All orders and amounts with the same run of characters as the signed ones, but for themselves."""
    run = signed.order_id + signed.amount
    for length in range(1, len(run)):
        order_id, amount = run[:length], run[length:]
        if order_id != signed.order_id and _AMOUNT.fullmatch(amount) and cents_of(amount) is not None:
            yield Split(order_id, amount)


def edited(form: Form, *removed: str, **changes: str) -> dict[str, str]:
    """The form with other values in some fields, some more fields, and some fewer."""
    return {name: value for name, value in {**form, **changes}.items() if name not in removed}


def moved(form: Form, to: Split) -> dict[str, str]:
    """The form with digits moved between order and amount, and without a plan, which has an amount of its own."""
    return edited(form, *PLAN_FIELDS, order_id=to.order_id, amount=to.amount)


def approval_of_nothing(form: Form, to: Split) -> dict[str, str]:
    """The form as one that only approves a card. Only a split with the amount 10.00 is signed as that."""
    return edited(form, "amount", *PLAN_FIELDS, order_id=to.order_id)


def with_plan(form: Form, *, installment: str, recurrence: str = "1 Month", duration: str = "Forever") -> Form:
    """The form as one for a plan: the first payment stays as it was signed, later ones are what is wanted here."""
    first = cents_of(form["amount"]) or 0
    fee = first - (cents_of(installment) or 0)
    return edited(form, amount=installment, startup_fee=text_of(fee), recurrence=recurrence, duration=duration)


class HostileBrowser:
    """Posts edited forms to the simulator's pages, and pays there."""

    def __init__(self, world: World) -> None:
        self._payer = Payer(world)

    def enter(self, page: Page, fields: Form | Sequence[tuple[str, str]]) -> Visit:
        """Posts a form to a page, which need not be the one that it was made for. Raises PageError."""
        return self._payer.enter(page, fields)

    def pay(self, page: Page, fields: Form | Sequence[tuple[str, str]], card: str = GOOD_CARD) -> Visit:
        """Posts a form and pays with a card. Raises PageError."""
        return self._payer.pay(self.enter(page, fields), card)
