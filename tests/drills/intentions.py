"""What clients want to be done once each: operations of all kinds, each with an order of its own in the ledger."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, Final

from tests.matrix.deeds import plant_customer
from tests.matrix.gateway import Gateway
from tests.scenarios.http_client import Raw
from tests.scenarios.stories import CUSTOMER_TOKEN, charge_body

Json = Mapping[str, Any]
Body = Callable[[Json], dict[str, object] | None]


class Deed(StrEnum):
    """A kind of operation."""

    CHARGE = "charge"
    AUTHORIZATION = "authorization"
    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"
    PARTIAL_REFUND = "partial refund"
    RETRY = "retry"
    CANCEL = "cancel"
    CHECKOUT = "checkout"


ENTRIES: Final = {deed: str(deed) for deed in Deed} | {
    Deed.VOID: "release",
    Deed.PARTIAL_REFUND: "refund",
    Deed.CHECKOUT: "charge",
}
"""How the simulator's ledger calls the effect of each."""
BASES: Final = {
    Deed.CAPTURE: Deed.AUTHORIZATION,
    Deed.VOID: Deed.AUTHORIZATION,
    Deed.REFUND: Deed.CHARGE,
    Deed.PARTIAL_REFUND: Deed.CHARGE,
}
"""Those that act on what another operation made."""
PAYER: Final = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
CHARGES_OF_TEN: Final = 4
"""Of ten drawn operations so many are charges; the others are of the other kinds in turn."""


@dataclass(frozen=True, kw_only=True)
class Intention:
    """One thing that a client wants, and repeats as it is until it has its answer.

    Attributes:
        name: its own, also of its order.
        deed: what it is.
        order_id: the order in the ledger that it has its effect on.
        method, path: of the request.
        body: gives the body from the data that its base was answered with.
        key: the Idempotency-Key; None where the client gives none.
        base: the intention whose answer it needs first.
    """

    name: str
    deed: Deed
    order_id: str
    method: str
    path: str
    body: Body
    key: str | None
    base: "Intention | None" = None

    @property
    def entry(self) -> tuple[str, str]:
        """Gives the ledger's word for its effect, and the order."""
        return ENTRIES[self.deed], self.order_id


class Wishes:
    """Draws intentions; of one seed always the same ones.

    Attributes:
        hesitating: orders of checkouts whose customers don't pay at their first visit.
    """

    def __init__(self, gateway: Gateway, seed: int, name: str, *, with_pages: bool = False) -> None:
        self._kinds = [each for each in Deed if each is not Deed.CHARGE and (with_pages or each is not Deed.CHECKOUT)]
        self.hesitating: set[str] = set()
        self._gateway = gateway
        self._draws = Random(seed)  # noqa: S311 - a drill is drawn again from its seed
        self._name = name
        self._count = 0
        plant_customer(gateway)

    def draw(self, operations: int) -> list[Intention]:
        """Gives so many, in the order in which clients have them; a base always stands before what needs it."""
        others = self._others()
        drawn: list[Intention] = []
        while len(drawn) < operations:
            deed = Deed.CHARGE if self._draws.randrange(10) < CHARGES_OF_TEN else next(others)
            base = BASES.get(deed)
            if base is not None:
                drawn.append(self.one(base))
            drawn.append(self.one(deed, drawn[-1] if base is not None else None))
        return drawn[:operations]

    def charges(self, operations: int) -> list[Intention]:
        """Gives so many charges."""
        return [self.one(Deed.CHARGE) for _ in range(operations)]

    def shuffled(self, intentions: list[Intention]) -> list[Intention]:
        """Gives them in another order."""
        return self._draws.sample(intentions, len(intentions))

    def one(self, deed: Deed, base: Intention | None = None) -> Intention:
        """Gives an intention; every third one is without a key."""
        self._count += 1
        name = f"{self._name}-{self._count}"
        order_id = name if base is None else base.order_id
        method, path, body = "POST", "payments/charge", _charge(name, self._count)
        if deed is Deed.AUTHORIZATION:
            body = _charge(name, self._count, type="AUTHORIZE")
        elif deed is Deed.CHECKOUT:
            path, body = "checkouts", _page(name)
            if self._count % 3 == 0:
                self.hesitating.add(order_id)
        elif deed is Deed.CAPTURE:
            path, body = "payments/capture", _capture
        elif deed in {Deed.VOID, Deed.REFUND, Deed.PARTIAL_REFUND}:
            path, body = "payments/refund", _return(deed, name)
        elif deed in {Deed.RETRY, Deed.CANCEL}:
            subscription_id = self._subscription(name, "FAILED" if deed is Deed.RETRY else "ACTIVE")
            path, body = f"subscriptions/{subscription_id}", _nothing
            method, path = ("POST", f"{path}/retry") if deed is Deed.RETRY else ("DELETE", path)
        key = None if self._draws.randrange(3) == 0 and deed is not Deed.CHECKOUT else f"key-{name}"
        return Intention(
            name=name, deed=deed, order_id=order_id, method=method, path=path, body=body, key=key, base=base
        )

    def _others(self) -> Iterator[Deed]:
        while True:
            yield from self._draws.sample(self._kinds, len(self._kinds))

    def _subscription(self, order_id: str, status: str) -> int:
        row = {"order_id": order_id, "customer_token": CUSTOMER_TOKEN, "amount": "20.00", "status": status}
        [planted] = self._gateway.plant(subscriptions=[row | {"installments_paid": 2}])["subscription_ids"]
        return int(planted)


def _charge(name: str, number: int, **members: object) -> Body:
    made = charge_body(name, items=f"thing {number}", amount=Raw(text=f"{100 + number % 900}.50"), **members)
    return lambda _told: made


def _page(name: str) -> Body:
    made = {"type": "payment", "order_id": name, "items": f"page of {name}", "currency": "LKR", "customer": PAYER}
    return lambda _told: made | {"amount": Raw(text="1000.00")}


def _capture(told: Json) -> dict[str, object]:
    return {"authorization_token": told["authorization_token"], "amount": Raw(text="100.00"), "deduction_details": "-"}


def _return(deed: Deed, name: str) -> Body:
    def body(told: Json) -> dict[str, object]:
        members: dict[str, object] = {"description": f"returned {name}"}
        if deed is Deed.VOID:
            return members | {"authorization_token": told["authorization_token"]}
        part = {"amount": Raw(text="10.00")} if deed is Deed.PARTIAL_REFUND else {}
        return members | {"payment_id": str(told["payment_id"])} | part

    return body


def _nothing(_told: Json) -> None:
    return None
