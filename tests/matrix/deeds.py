"""Everything that the service does at the gateway: what must be there before, what is asked, what it comes to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.draws import drawn_uuid
from tests.matrix.gateway import Gateway
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.stories import CUSTOMER_TOKEN, charge_body, fresh

AMOUNT: Final = Raw(text="345.67")


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request, which is repeated as it is."""

    method: str
    path: str
    body: dict[str, object] | None = None
    key: str

    def send(self, client: Client) -> Reply:
        """Sends it; raises OSError or HTTPException where no answer comes."""
        if self.method == "DELETE":
            return client.delete(self.path, self.body, key=self.key)
        return client.post(self.path, self.body, key=self.key)


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A kind of operation.

    Attributes:
        name: as the tables call it.
        endpoint: the simulator's name of what is called.
        entry: how the ledger calls the effect.
        prepare: makes what it acts on, through the service where it must know it, and gives the request.
        calls: how many calls it makes until it is sent, where a token is at hand.
        is_provable: whether the gateway shows that it was done.
        is_repeatable: whether it is sent once more to find out, because that can't do it twice.
    """

    name: str
    endpoint: str
    entry: str
    prepare: Callable[[Client, Gateway], Ask]
    calls: int = 1
    is_provable: bool = False
    is_repeatable: bool = False


def charging(**changes: object) -> Ask:
    """Asks for a charge on an order of its own."""
    return Ask(
        method="POST", path="payments/charge", body=charge_body(**{"amount": AMOUNT} | changes), key=fresh("key")
    )


def plant_customer(gateway: Gateway) -> None:
    """Makes the customer known who pays."""
    gateway.plant(customers=[{"customer_token": CUSTOMER_TOKEN}])


def _prepare_charge(client: Client, gateway: Gateway) -> Ask:
    _warm_up(client)
    plant_customer(gateway)
    return charging()


def _prepare_charge_by_handle(client: Client, gateway: Gateway) -> Ask:
    _warm_up(client)
    plant_customer(gateway)
    customer = _made(client.post("customers", {"customer_token": CUSTOMER_TOKEN}))
    return charging(customer_token=customer["id"])


def _prepare_authorization(client: Client, gateway: Gateway) -> Ask:
    _warm_up(client)
    plant_customer(gateway)
    return charging(type="AUTHORIZE")


def _prepare_capture(client: Client, gateway: Gateway) -> Ask:
    plant_customer(gateway)
    held = _made(charging(type="AUTHORIZE").send(client))
    body = {"authorization_token": held["authorization_token"], "amount": AMOUNT, "deduction_details": "none"}
    return Ask(method="POST", path="payments/capture", body=body, key=fresh("key"))


def _prepare_void(client: Client, gateway: Gateway) -> Ask:
    plant_customer(gateway)
    held = _made(charging(type="AUTHORIZE").send(client))
    return _giving_back(authorization_token=held["authorization_token"])


def _prepare_refund(client: Client, gateway: Gateway) -> Ask:
    plant_customer(gateway)
    return _giving_back(payment_id=str(_made(charging().send(client))["payment_id"]))


def _prepare_partial_refund(client: Client, gateway: Gateway) -> Ask:
    plant_customer(gateway)
    payment_id = str(_made(charging().send(client))["payment_id"])
    return _giving_back(payment_id=payment_id, amount=Raw(text="100.00"))


def _prepare_retry(client: Client, gateway: Gateway) -> Ask:
    _warm_up(client)
    return Ask(method="POST", path=f"subscriptions/{_subscription(gateway, 'FAILED')}/retry", key=fresh("key"))


def _prepare_cancel(client: Client, gateway: Gateway) -> Ask:
    _warm_up(client)
    return Ask(method="DELETE", path=f"subscriptions/{_subscription(gateway, 'ACTIVE')}", key=fresh("key"))


def _warm_up(client: Client) -> None:
    """Lets it fetch an access token."""
    reply = client.get(f"payments/{fresh('order')}")
    assert reply.status in {200, 404}, str(reply)


def _giving_back(**members: object) -> Ask:
    body = members | {"description": f"returned {drawn_uuid().hex[:8]}"}
    return Ask(method="POST", path="payments/refund", body=body, key=fresh("key"))


def _subscription(gateway: Gateway, status: str) -> int:
    plant_customer(gateway)
    row = {"order_id": fresh("order"), "customer_token": CUSTOMER_TOKEN, "amount": "20.00", "status": status}
    planted: list[int] = gateway.plant(subscriptions=[row | {"installments_paid": 2}])["subscription_ids"]
    return planted[0]


def _made(reply: Reply) -> dict[str, Any]:
    assert reply.status == 200, str(reply)
    data = reply.json["data"]
    assert isinstance(data, dict)
    return data


DEEDS: Final = (
    Deed(name="charge", endpoint="charge", entry="charge", prepare=_prepare_charge, is_provable=True),
    Deed(
        name="charge by handle",
        endpoint="charge",
        entry="charge",
        prepare=_prepare_charge_by_handle,
        is_provable=True,
    ),
    Deed(name="authorization", endpoint="charge", entry="authorization", prepare=_prepare_authorization),
    Deed(name="capture", endpoint="capture", entry="capture", prepare=_prepare_capture, is_repeatable=True),
    Deed(name="refund", endpoint="refund", entry="refund", prepare=_prepare_refund, is_provable=True),
    Deed(name="partial refund", endpoint="refund", entry="refund", prepare=_prepare_partial_refund),
    Deed(name="release", endpoint="refund", entry="release", prepare=_prepare_void),
    Deed(name="retry", endpoint="retry", entry="retry", prepare=_prepare_retry, calls=2, is_provable=True),
    Deed(name="cancel", endpoint="cancel", entry="cancel", prepare=_prepare_cancel, is_repeatable=True),
)
