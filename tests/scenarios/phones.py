"""Two customers of one shop, with what each of them has, and the tokens of their phones."""

from dataclasses import dataclass
from typing import Any

from tests.draws import drawn_uuid
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.stories import charge_body, fresh

from payrelay.api.openapi.examples import REQUESTS
from payrelay.core.access.client_token import CLIENT_SCOPES

ALL_SCOPES = sorted(CLIENT_SCOPES)
AMOUNT = Raw(text="345.67")


@dataclass(frozen=True, kw_only=True)
class Person:
    """A customer, an order that the server charged for it, and one that stands open.

    Attributes:
        customer_id: of the stored customer.
        reference, label: the shop's own words for the person.
        paid_order, operation_id, key: the order that was charged by the server, and how.
        open_order, checkout_id: the order that the phone is to pay, with a closed checkout of it.
    """

    customer_id: str
    reference: str
    label: str
    paid_order: str
    operation_id: str
    key: str
    open_order: str
    checkout_id: str

    @property
    def names(self) -> dict[str, str]:
        """Everything that must not be told anybody else."""
        return dict(vars(self))


def token_for(server: Client, **members: object) -> Client:
    """Has the server issue a token, and gives the phone that holds it."""
    reply = server.post("client-tokens", members)
    assert reply.status == 200, str(reply)
    return server.holding(reply.json["data"]["token"])


def arrive(server: Client) -> Person:
    """A person whose card is stored, who has paid for one order and is about to pay for another."""
    token = drawn_uuid().hex.upper()
    reference, label = fresh("user"), fresh("label")
    stored = data(server.post("customers", {"customer_token": token, "reference": reference, "label": label}))
    paid_order, key, open_order = fresh("paid"), fresh("key"), fresh("open")
    paid = server.charge(charge_body(paid_order, customer_token=stored["id"]), key=key)
    assert paid.status == 200, str(paid)
    checkout = data(
        server.post(
            "checkouts",
            REQUESTS["openCheckout"]["payment"]["value"] | {"order_id": open_order, "customer_reference": reference},
        )
    )
    assert server.delete(f"checkouts/{checkout['id']}").status == 200  # nobody charges an order whose page is open
    return Person(
        customer_id=stored["id"],
        reference=reference,
        label=label,
        paid_order=paid_order,
        operation_id=str(paid.header("payrelay-operation")),
        key=key,
        open_order=open_order,
        checkout_id=checkout["id"],
    )


def data(reply: Reply) -> dict[str, Any]:
    """The data of a success, which must be an object."""
    assert reply.status == 200, str(reply)
    found = reply.json["data"]
    assert isinstance(found, dict)
    return found
