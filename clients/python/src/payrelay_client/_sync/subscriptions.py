"""Subscriptions: the gateway's records, what Payrelay knows of them, and what may be done with them."""

from collections.abc import Iterator
from dataclasses import replace

from payrelay_client import requests
from payrelay_client._sync.effects import Effects, Open
from payrelay_client._sync.sending import Sender
from payrelay_client.bodies import nothing
from payrelay_client.decoding import models
from payrelay_client.models import Payment, PaymentList, Subscription, SubscriptionState
from payrelay_client.outcomes import Done
from payrelay_client.requests import Effect


class Subscriptions:
    """Subscriptions, as the gateway has them."""

    def __init__(self, sender: Sender, effects: Effects) -> None:
        self._sender = sender
        self._effects = effects

    def list(self, *, no_cache: bool = False) -> tuple[Subscription, ...]:
        """Gives all subscriptions."""
        reply = self._sender.ask_for_list(requests.get("/subscriptions", no_cache=no_cache))
        return models(Subscription, reply.data)

    def show(self, subscription_id: str, *, with_payments: bool = False, no_cache: bool = False) -> Subscription:
        """Gives one subscription, with its payments where they are wanted."""
        query = {"expand": "payments" if with_payments else None}
        reply = self._sender.ask(requests.get(_path(subscription_id), query, no_cache=no_cache))
        subscription = Subscription.of(reply.data)
        shown = models(Payment, subscription.raw.get("payments"))
        return replace(subscription, payments=PaymentList(shown, reply.missing))

    def payments(self, subscription_id: str, *, no_cache: bool = False) -> PaymentList:
        """Gives the payments of a subscription; ``missing`` and Busy are as for the payments of an order."""
        request = requests.get(f"{_path(subscription_id)}/payments", no_cache=no_cache)
        reply = self._sender.ask_for_list(request)
        return PaymentList(models(Payment, reply.data), reply.missing)

    def retry(self, subscription_id: str, *, name: str | None = None, again: bool = False) -> Done[None] | Open[None]:
        """Charges the failed installment of a subscription. With a store it needs a name, such as the month's."""
        request = requests.post(f"{_path(subscription_id)}/retry", None)
        return self._effects.carry_out(Effect(request=request, kind="retry", name=name, again=again, read=nothing))

    def cancel(self, subscription_id: str, *, name: str | None = None) -> Done[None] | Open[None]:
        """Cancels a subscription. By default its name is the subscription's id."""
        request = requests.delete(_path(subscription_id))
        return self._effects.carry_out(
            Effect(request=request, kind="cancel", name=name or subscription_id, again=False, read=nothing)
        )


class SubscriptionStates:
    """What Payrelay knows of subscriptions, without asking the gateway."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def list(self, *, limit: int | None = None) -> Iterator[SubscriptionState]:
        """Gives all known states, page by page."""
        for each in self._sender.pages(requests.get("/subscription-states", {"limit": limit})):
            yield SubscriptionState.of(each)

    def show(self, subscription_id: str) -> SubscriptionState:
        """Gives the known state of a subscription."""
        reply = self._sender.ask(requests.get(f"/subscription-states/{requests.segment(subscription_id)}"))
        return SubscriptionState.of(reply.data)


def _path(subscription_id: str) -> str:
    return f"/subscriptions/{requests.segment(subscription_id)}"
