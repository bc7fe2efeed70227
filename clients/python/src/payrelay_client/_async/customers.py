"""Stored customers, who are charged by a handle."""

from collections.abc import AsyncIterator
from typing import Literal

from payrelay_client import requests
from payrelay_client._async.sending import Sender
from payrelay_client.models import Customer, ErasedCustomer
from payrelay_client.requests import Repeat
from payrelay_client.unchanged import UNCHANGED, Unchanged, changes


class AsyncCustomers:
    """Customers whose approved cards are stored."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def list(
        self,
        *,
        reference: str | None = None,
        state: Literal["active", "removed", "erased"] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Customer]:
        """Gives the customers, newest first, page by page."""
        query = {"reference": reference, "state": state, "limit": limit}
        async for each in self._sender.pages(requests.get("/customers", query)):
            yield Customer.of(each)

    async def show(self, customer_id: str) -> Customer:
        """Gives a customer."""
        return Customer.of((await self._sender.ask(requests.get(_path(customer_id)))).data)

    async def store(
        self,
        *,
        customer_token: str,
        reference: str | None = None,
        label: str | None = None,
        method: str | None = None,
        card_no_masked: str | None = None,
        card_expiry: str | None = None,
        card_holder: str | None = None,
    ) -> Customer:
        """Stores a customer by a gateway's token that you have already; the same token gives the same customer."""
        body = {
            "customer_token": customer_token,
            "reference": reference,
            "label": label,
            "method": method,
            "card_no_masked": card_no_masked,
            "card_expiry": card_expiry,
            "card_holder": card_holder,
        }
        request = requests.post("/customers", body, repeat=Repeat.NOT_DONE_ONLY)
        return Customer.of((await self._sender.ask(request)).data)

    async def change(
        self,
        customer_id: str,
        *,
        reference: str | Unchanged | None = UNCHANGED,
        label: str | Unchanged | None = UNCHANGED,
    ) -> Customer:
        """Gives a customer another reference or label; None removes one."""
        request = requests.patch(_path(customer_id), changes(reference=reference, label=label))
        return Customer.of((await self._sender.ask(request)).data)

    async def remove(self, customer_id: str) -> Customer:
        """Removes a customer, and destroys its token."""
        return Customer.of((await self._sender.ask(requests.delete(_path(customer_id)))).data)

    async def erase(self, customer_id: str) -> ErasedCustomer:
        """Erases the personal data of a customer; may be repeated."""
        return ErasedCustomer.of((await self._sender.ask(requests.post(f"{_path(customer_id)}/erase", None))).data)


def _path(customer_id: str) -> str:
    return f"/customers/{requests.segment(customer_id)}"
