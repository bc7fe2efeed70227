"""Everything that comes in at the gateway's pages and by its notifications, and what is told of it to an endpoint.

An errand is the whole way, as a shop and its customer see it. The shop asks again where it got no answer; the customer
pays once, and the gateway repeats a notification until it is answered.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.matrix.gateway import Gateway
from tests.scenarios.event_receiver import EventReceiver
from tests.scenarios.http_client import Client, Raw
from tests.scenarios.stories import charge_body, fresh, fresh_number

from payrelay.runtime.hooks import FlowPoint

AMOUNT: Final = Raw(text="1000.00")
PAGES: Final = {
    "payment": "checkout",
    "recurring": "checkout",
    "preapproval": "preapprove",
    "authorization": "authorize",
}
_PAYER: Final = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "0771234567",
    "address": "1 Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}


@dataclass(kw_only=True)
class Shop:
    """A shop's server, whose requests are repeated until they are answered, and where its events arrive.

    Attributes:
        ask: sends a request until it is answered with 200, and gives the data.
        heard: waits until so many different events of a type have arrived, and gives what they say.
        settled: waits until everything has been told, and nothing is worked on.
        gateway: where its customers pay.
        receiver: its endpoint.
        checkout, customer_id: what the errand is about.
        labels: the names that it gave its customers.
    """

    ask: Callable[..., Any]
    heard: Callable[[str, int], list[dict[str, Any]]]
    settled: Callable[[], None]
    gateway: Gateway
    receiver: EventReceiver
    checkout: dict[str, Any] = field(default_factory=dict)
    customer_id: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    def let_pay(self, kind: str, **members: object) -> None:
        """Opens a checkout, and has the customer pay it on the gateway's page."""
        amount = {} if kind == "preapproval" else {"amount": AMOUNT}
        body = {"type": kind, "order_id": fresh("order"), "items": "Door bell", "currency": "LKR", "customer": _PAYER}
        key = fresh("key")
        self.checkout = self.ask("POST", "checkouts", body | amount | members, key)
        self.gateway.pay(PAGES[kind], self.checkout["form"]["fields"])

    def relabel(self, customer_id: str) -> None:
        """Gives a customer another name."""
        self.labels[customer_id] = fresh("label")
        self.ask("PATCH", f"customers/{customer_id}", {"label": self.labels[customer_id]}, None)

    def enrolled(self) -> str:
        """Stores a customer; gives its id."""
        body = {"customer_token": fresh_number() + fresh_number()}
        return str(self.ask("POST", "customers", body, None)["id"])


def _nothing(_shop: Shop) -> None:
    """Nothing must be there before."""


def _completed(shop: Shop) -> Iterator[str]:
    shown = shop.ask("GET", f"checkouts/{shop.checkout['id']}", None, None)
    if shown["state"] != "completed":
        yield f"the checkout is {shown['state']}"


def _notified(shop: Shop) -> Iterator[str]:
    shown = shop.ask("GET", f"checkouts/{shop.checkout['id']}", None, None)
    if shown["state"] != "notified":
        yield f"the checkout is {shown['state']}, and nobody captured its authorization"


def _paid(shop: Shop) -> Iterator[str]:
    yield from _completed(shop)
    shown = shop.ask("GET", f"checkouts/{shop.checkout['id']}", None, None)
    paid = [str(entry["payment_id"]) for entry in shop.gateway.ledger() if entry["order_id"] == shown["order_id"]]
    if shown["payment_id"] not in paid:
        yield f"the checkout has the payment {shown['payment_id']}, and the gateway {paid}"


def _one_customer(shop: Shop) -> Iterator[str]:
    yield from _completed(shop)
    customers = shop.ask("GET", "customers", None, None)
    if [customer["id"] for customer in customers] != [shop.customer_id]:
        yield f"the approval became {len(customers)} customers"


def _named(shop: Shop) -> Iterator[str]:
    for customer_id, label in shop.labels.items():
        shown = shop.ask("GET", f"customers/{customer_id}", None, None)
        if shown["label"] != label:
            yield f"{customer_id} is called {shown['label']} in place of {label}"


def _pay(shop: Shop) -> None:
    shop.let_pay("payment")


def _pay_unheard(shop: Shop) -> None:
    """The notification is lost: the shop asks, until the gateway's own search has shown the payment."""
    shop.gateway.lose_notification()
    shop.let_pay("payment")
    path = f"checkouts/{shop.checkout['id']}"
    while shop.ask("GET", path, None, None)["state"] != "completed":  # asking has an end of its own
        pass


def _approve_and_charge(shop: Shop) -> None:
    shop.let_pay("preapproval")
    [told] = shop.heard("customer.created", 1)
    shop.customer_id = told["data"]["customer_id"]
    shop.heard("checkout.completed", 1)
    # Whoever died of a delivery in the middle of the charge would leave it unknown for days: that is a charge's cell.
    shop.settled()
    shop.ask("POST", "payments/charge", charge_body(customer_token=shop.customer_id), fresh("key"))


def _hold(shop: Shop) -> None:
    shop.let_pay("authorization")


def _hold_and_capture(shop: Shop) -> None:
    shop.let_pay("authorization")
    shop.heard("checkout.notified", 1)
    shop.settled()
    body = {"authorization_token": shop.checkout["id"], "amount": AMOUNT, "description": "shipped"}
    shop.ask("POST", "payments/capture", body, fresh("key"))


def _subscribe(shop: Shop) -> None:
    shop.let_pay("recurring", recurrence="1 Month", duration="3 Month")


def _pay_and_hear(shop: Shop) -> None:
    shop.let_pay("payment")
    shop.heard("checkout.completed", 1)


def _charge_back(shop: Shop) -> None:
    order_id = shop.checkout["order_id"]
    [payment_id] = [entry["payment_id"] for entry in shop.gateway.ledger() if entry["order_id"] == order_id]
    shop.gateway.charge_back(payment_id)


def _store_two(shop: Shop) -> None:
    shop.labels = {shop.enrolled(): "", shop.enrolled(): ""}
    shop.heard("customer.created", 2)


def _relabel(shop: Shop) -> None:
    """Several changes of one customer, and one of another; the first is heard of before the others are made."""
    first, second = shop.labels
    shop.relabel(first)
    shop.heard("customer.updated", 1)
    for customer_id in (first, second, first):
        shop.relabel(customer_id)


def _relabel_refused(shop: Shop) -> None:
    shop.receiver.statuses += [500]
    _relabel(shop)


_OPENED: Final = (FlowPoint.OPENING, FlowPoint.OPENED)
_TAKEN: Final = (FlowPoint.INGESTING, FlowPoint.INGESTED)
_ASKED: Final = (FlowPoint.INQUIRING, FlowPoint.INQUIRED)
_TAKING: Final = (FlowPoint.TAKING_SLOT, FlowPoint.TOOK_SLOT)
_ENDING: Final = (FlowPoint.ENDING_SLOT, FlowPoint.ENDED_SLOT)
_BELIEVED: Final = (FlowPoint.ACCEPTING_TOKEN, FlowPoint.ACCEPTED_TOKEN)
_STORED: Final = (FlowPoint.STORING, FlowPoint.STORED)
_NOTED: Final = (FlowPoint.NOTING, FlowPoint.NOTED)
_FINISHED: Final = (FlowPoint.FINISHING, FlowPoint.FINISHED)
_CLOSED: Final = (FlowPoint.CLOSING, FlowPoint.CLOSED)
_TOLD: Final = (
    FlowPoint.PUBLISHING,
    FlowPoint.PUBLISHED,
    FlowPoint.LEASING,
    FlowPoint.LEASED,
    FlowPoint.DELIVERING,
    FlowPoint.DELIVERED,
    FlowPoint.RECORDING_ATTEMPTS,
    FlowPoint.RECORDED_ATTEMPTS,
)


@dataclass(frozen=True, kw_only=True)
class Errand:
    """A kind of thing that comes in, or is told.

    Attributes:
        name: as the tables call it.
        passages: what it comes to, each as often as it surely does; the order between coming in and telling is open.
        prepare: what must be there before.
        go: what shop and customer do.
        check: what isn't as promised in the end, beyond what holds of every errand.
        told: the events that must come of it, no more and no fewer.
        entries: what must stand in the gateway's ledger for it.
    """

    name: str
    passages: tuple[FlowPoint, ...]
    prepare: Callable[[Shop], None] = _nothing
    go: Callable[[Shop], None]
    check: Callable[[Shop], Iterator[str]]
    told: Counter[str]
    entries: Counter[str] = field(default_factory=Counter)


ERRANDS: Final = (
    Errand(
        name="checkout",
        passages=(*_OPENED, *_TAKEN, *_TAKING, *_ASKED, *_FINISHED, *_CLOSED, *_ENDING, *_TOLD),
        go=_pay,
        check=_paid,
        told=Counter({"checkout.completed": 1}),
        entries=Counter({"charge": 1}),
    ),
    Errand(
        name="checkout without a notification",
        passages=(*_OPENED, *_TAKING, *_ASKED, *_FINISHED, *_ENDING, *_TOLD),
        go=_pay_unheard,
        check=_paid,
        told=Counter({"checkout.completed": 1}),
        entries=Counter({"charge": 1}),
    ),
    Errand(
        name="approval and charge by handle",
        passages=(*_OPENED, *_TAKEN, *_BELIEVED, *_STORED, *_FINISHED, *_CLOSED, *_TOLD, *_TAKEN, *_TOLD),
        go=_approve_and_charge,
        check=_one_customer,
        told=Counter({"customer.created": 1, "checkout.completed": 1, "operation.succeeded": 1}),
        # The gateway tries a card that is to be approved with a small amount, and gives that back.
        entries=Counter({"charge": 2, "refund": 1}),
    ),
    Errand(
        name="hold on the page",
        passages=(*_OPENED, *_TAKEN, *_BELIEVED, *_FINISHED, *_CLOSED, *_TOLD),
        go=_hold,
        check=_notified,
        told=Counter({"checkout.notified": 1}),
        entries=Counter({"authorization": 1}),
    ),
    Errand(
        name="hold on the page and its capture",
        passages=(*_OPENED, *_TAKEN, *_BELIEVED, *_FINISHED, *_CLOSED, *_TOLD, *_TOLD),
        go=_hold_and_capture,
        check=_completed,
        told=Counter({"checkout.notified": 1, "operation.succeeded": 1, "checkout.completed": 1}),
        entries=Counter({"authorization": 1, "capture": 1}),
    ),
    Errand(
        name="subscription",
        passages=(
            *_OPENED,
            *_TAKEN,
            *_TAKING,
            *_ASKED,
            *_ASKED,
            *_NOTED,
            *_NOTED,
            *_FINISHED,
            *_CLOSED,
            *_ENDING,
            *_TOLD,
        ),
        go=_subscribe,
        check=_completed,
        told=Counter({"checkout.completed": 1, "subscription.installment_paid": 1, "subscription.updated": 1}),
        entries=Counter({"installment": 1}),
    ),
    Errand(
        name="chargeback",
        passages=(*_TAKEN, *_TAKING, *_ASKED, *_NOTED, *_CLOSED, *_ENDING, *_TOLD),
        prepare=_pay_and_hear,
        go=_charge_back,
        check=_completed,
        told=Counter({"payment.charged_back": 1}),
        entries=Counter({"chargeback": 1}),
    ),
    Errand(
        name="delivery",
        passages=(*_STORED * 4, *_TOLD, *_TOLD),
        prepare=_store_two,
        go=_relabel,
        check=_named,
        told=Counter({"customer.updated": 4}),
    ),
    Errand(
        name="delivery turned away",
        passages=(*_STORED * 4, *_TOLD, *_TOLD),
        prepare=_store_two,
        go=_relabel_refused,
        check=_named,
        told=Counter({"customer.updated": 4}),
    ),
)


def client_sends(client: Client, method: str, path: str, body: object, key: str | None) -> Any:  # noqa: ANN401, of any JSON
    """Sends one request of a shop; gives the data of a 200, or None. Raises what a broken connection does."""
    if method == "GET":
        reply = client.get(path)
    elif method == "POST":
        reply = client.post(path, body, key=key)
    else:
        reply = client.change(path, body)
    assert reply.status < 400 or reply.status in {409, 503}, str(reply)
    return reply.json["data"] if reply.status == 200 else None
