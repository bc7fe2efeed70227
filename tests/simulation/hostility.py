"""What is hostile in a life besides chance: customers with edited forms, invented news, other principals and phones.

Each kind is drawn from a sequence of its own, so that a life without any is as it was. A kind is drawn only where it is
switched on here: a hostility goes on as soon as the program withstands it.
"""

import dataclasses
from random import Random
from typing import Final

from tests.hostile_browser import Split

FORMS, DISGUISES, PRINCIPALS, PHONES = "forms", "disguises", "principals", "phones"
ALL: Final = frozenset({FORMS, DISGUISES, PRINCIPALS, PHONES})
SWITCHED_ON: Final = ALL
"""The hostilities that lives draw."""

SPLITS: Final = (Split("A1", "2510.00"), Split("A12", "510.00"), Split("A125", "10.00"))
"""Orders of one shop whose forms have one signed text."""
CHEAP: Final = Split("A", "110.00")
"""What has the signed text of order A1 and 10.00: its form's hash fits a plan of A1 whose first payment is 10.00."""
CHEAP_MINOR: Final = 1_000
OWN_ADDRESS: Final = "https://customer.simulated/"
"""Where a hostile customer has the gateway's notifications sent."""
RIVAL: Final = "rival"
"""A principal that has nothing of its own, and tries its hands on what others have."""
PHONE_ORDERS: Final = ("T-1", "T-2")
PHONE_AMOUNT: Final = "100.50"
"""What a phone was given to pay, once."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostileFate:
    """How hostile a life is.

    Attributes:
        customers: how many shops have customers who edit forms, and news of them.
        disguises: how many invented payments a genuine notification is sent again with.
        meddlers: how many act for the rival.
        phone_orders: how many orders are paid by phones, with several tokens each.
    """

    customers: int = 0
    disguises: int = 0
    meddlers: int = 0
    phone_orders: int = 0

    @classmethod
    def of(cls, draw: Random, *, has_pages: bool, switched_on: frozenset[str] = SWITCHED_ON) -> "HostileFate | None":
        """Draws it; None for a life in which nobody is hostile, as most are."""
        customers = draw.choice((0,) * 7 + (1,)) if has_pages else 0
        disguises = draw.choice((0,) * 9 + (30,)) if has_pages else 0
        meddlers, phone_orders = draw.choice((0,) * 7 + (1,)), draw.choice((0,) * 7 + (1,))
        fate = cls(
            customers=customers if FORMS in switched_on else 0,
            disguises=disguises if DISGUISES in switched_on else 0,
            meddlers=meddlers if PRINCIPALS in switched_on else 0,
            phone_orders=phone_orders if PHONES in switched_on else 0,
        )
        return None if fate == cls() else fate
