"""Client tokens: what a server gives an app, so that it can pay one order and do nothing else."""

from collections.abc import Iterator, Sequence
from typing import Literal

from payrelay_client import requests
from payrelay_client._sync.sending import Sender
from payrelay_client.exact_json import Amount, amount_of
from payrelay_client.models import ClientToken, IssuedClientToken


class ClientTokens:
    """Client tokens that a key has issued."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def issue(
        self,
        *,
        customer_id: str | None = None,
        order_id: str | None = None,
        type: Literal["payment", "authorization", "recurring", "preapproval"] | None = None,  # noqa: A002 - its word
        amount: Amount | None = None,
        amount_max: Amount | None = None,
        currency: str | None = None,
        payments: int | None = None,
        recurrence: str | None = None,
        duration: str | None = None,
        startup_fee: Amount | None = None,
        scopes: Sequence[str] | None = None,
        expires_in_s: int | None = None,
    ) -> IssuedClientToken:
        """Issues a token for a customer, an order, or both. ``amount="open"`` lets the app choose the amount."""
        exact = amount if amount is None or amount == "open" else amount_of(amount)
        body = {
            "customer_id": customer_id,
            "order_id": order_id,
            "type": type,
            "amount": exact,
            "amount_max": None if amount_max is None else amount_of(amount_max, "amount_max"),
            "currency": currency,
            "payments": payments,
            "recurrence": recurrence,
            "duration": duration,
            "startup_fee": None if startup_fee is None else amount_of(startup_fee, "startup_fee"),
            "scopes": None if scopes is None else list(scopes),
            "expires_in_s": expires_in_s,
        }
        return IssuedClientToken.of((self._sender.ask(requests.post("/client-tokens", body))).data)

    def list(self, *, customer_id: str | None = None, limit: int | None = None) -> Iterator[ClientToken]:
        """Gives the tokens that have not expired, newest first, page by page."""
        query = {"customer_id": customer_id, "limit": limit}
        for each in self._sender.pages(requests.get("/client-tokens", query)):
            yield ClientToken.of(each)

    def revoke(self, token_id: str) -> None:
        """Revokes a token."""
        self._sender.ask(requests.delete(f"/client-tokens/{requests.segment(token_id)}"))

    def revoke_all(self, *, customer_id: str | None = None, credential_id: str | None = None) -> int:
        """Revokes the tokens of a customer, those that a key issued, or all; gives how many."""
        query = {"customer_id": customer_id, "credential_id": credential_id}
        reply = self._sender.ask(requests.delete("/client-tokens", query))
        revoked = reply.data.get("revoked") if isinstance(reply.data, dict) else None
        return revoked if isinstance(revoked, int) else 0
