"""Parts of request bodies, as typed values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from payrelay_client.exact_json import Amount, amount_of


@dataclass(frozen=True, kw_only=True)
class ItemEntry:
    """One item of an order."""

    name: str
    number: str
    quantity: int
    unit_amount: Amount


@dataclass(frozen=True, kw_only=True)
class Buyer:
    """Who pays on the gateway's page; the gateway wants every member."""

    first_name: str
    last_name: str
    email: str
    phone: str
    address: str
    city: str
    country: str


@dataclass(frozen=True, kw_only=True)
class DeliveryAddress:
    """Where an order is delivered."""

    address: str | None = None
    city: str | None = None
    country: str | None = None


def entries(items: Sequence[ItemEntry] | None) -> list[dict[str, object]] | None:
    """Writes the items of an order as the service wants them. Raises InvalidAmount."""
    if items is None:
        return None
    return [
        {
            "name": each.name,
            "number": each.number,
            "quantity": each.quantity,
            "unit_amount": amount_of(each.unit_amount, "unit_amount"),
        }
        for each in items
    ]


def members_of(value: Buyer | DeliveryAddress | None) -> Mapping[str, object] | None:
    """Writes a value as the service wants it, without what isn't given."""
    return None if value is None else {name: each for name, each in vars(value).items() if each is not None}


def refund_number(data: object) -> str | None:
    """Gives the gateway's number of a refund, which is a text here."""
    return str(data) if isinstance(data, int | str) and not isinstance(data, bool) else None


def nothing(data: object) -> None:
    """Reads the data of what has none."""
    del data
