"""Checkouts: pages on which a customer pays, approves a card, subscribes or authorizes an amount."""

from collections.abc import Sequence
from typing import Literal

from payrelay_client import requests
from payrelay_client._sync.effects import Effects
from payrelay_client._sync.sending import Sender
from payrelay_client.bodies import Buyer, DeliveryAddress, ItemEntry, entries, members_of
from payrelay_client.exact_json import Amount, amount_of
from payrelay_client.models import Checkout, OpenedCheckout
from payrelay_client.requests import Effect

CheckoutType = Literal["payment", "preapproval", "recurring", "authorization"]
PaymentMethodName = Literal["VISA", "MASTER", "AMEX", "HELAPAY", "FRIMI", "QPLUS"]


class Checkouts:
    """Pages on which a customer is asked for one thing."""

    def __init__(self, sender: Sender, effects: Effects) -> None:
        self._sender = sender
        self._effects = effects

    def open(
        self,
        *,
        type: CheckoutType,  # noqa: A002 - the interface's word
        order_id: str,
        items: str,
        currency: str,
        customer: Buyer,
        amount: Amount | None = None,
        customer_reference: str | None = None,
        return_to: str | None = None,
        cancel_to: str | None = None,
        expires_in_s: int | None = None,
        delivery: DeliveryAddress | None = None,
        item_list: Sequence[ItemEntry] | None = None,
        custom_1: str | None = None,
        custom_2: str | None = None,
        platform: str | None = None,
        payment_method: PaymentMethodName | None = None,
        recurrence: str | None = None,
        duration: str | None = None,
        startup_fee: Amount | None = None,
        auto_cancel: bool | None = None,
        max_retries: int | None = None,
        recurring_start_date: str | None = None,
        is_recovery_due: bool | None = None,
        name: str | None = None,
        again: bool = False,
    ) -> OpenedCheckout:
        """Opens a page for a customer; lead them to its ``url``. Raises PayrelayError.

        An order has one checkout at a time: the same call gives the same page again. ``again=True`` opens another one,
        after the last one failed, was cancelled, closed or has expired.
        """
        body = {
            "type": type,
            "order_id": order_id,
            "items": items,
            "currency": currency,
            "customer": members_of(customer),
            "amount": None if amount is None else amount_of(amount),
            "customer_reference": customer_reference,
            "return_to": return_to,
            "cancel_to": cancel_to,
            "expires_in_s": expires_in_s,
            "delivery": members_of(delivery),
            "itemList": entries(item_list),
            "custom_1": custom_1,
            "custom_2": custom_2,
            "platform": platform,
            "payment_method": payment_method,
            "recurrence": recurrence,
            "duration": duration,
            "startup_fee": None if startup_fee is None else amount_of(startup_fee, "startup_fee"),
            "auto_cancel": auto_cancel,
            "max_retries": max_retries,
            "recurring_start_date": recurring_start_date,
            "is_recovery_due": is_recovery_due,
        }
        request = requests.post("/checkouts", body)
        return self._effects.ask_with_key(
            Effect(request=request, kind="checkout", name=name or order_id, again=again, read=OpenedCheckout.of)
        )

    def show(self, checkout_id: str) -> Checkout:
        """Gives a checkout, as far as its outcome is known now."""
        reply = self._sender.ask(requests.get(f"/checkouts/{requests.segment(checkout_id)}"))
        return Checkout.of(reply.data)

    def close(self, checkout_id: str) -> Checkout:
        """Closes the page of a checkout, so that its order is free for another one. May be repeated.

        Where ``may_still_be_paid`` is true, a form of it is out, and a later payment completes it. Raises Conflict
        where it was paid or held, and PayrelayError.
        """
        reply = self._sender.ask(requests.delete(f"/checkouts/{requests.segment(checkout_id)}"))
        return Checkout.of(reply.data)
