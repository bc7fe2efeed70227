"""Payments: charge, authorize, capture, refund, void, and the payments of an order."""

from collections.abc import Mapping, Sequence

from payrelay_client import requests
from payrelay_client._sync.effects import Effects, Open
from payrelay_client._sync.sending import Sender
from payrelay_client.bodies import ItemEntry, entries, refund_number
from payrelay_client.decoding import models
from payrelay_client.exact_json import Amount, amount_of
from payrelay_client.models import Capture, Charge, Payment, PaymentList
from payrelay_client.outcomes import Done
from payrelay_client.requests import Effect


class Payments:
    """What moves money.

    Every method that moves money gives Done or Open, and raises PayrelayError where the request took no effect.
    ``name`` is what the payment is called in the store, the same after a crash. ``again=True`` begins another attempt,
    where a final answer said that the last one took nothing.
    """

    def __init__(self, sender: Sender, effects: Effects) -> None:
        self._sender = sender
        self._effects = effects

    def charge(
        self,
        *,
        order_id: str,
        items: str,
        currency: str,
        amount: Amount,
        customer_token: str | None = None,
        custom_1: str | None = None,
        custom_2: str | None = None,
        notify_url: str | None = None,
        item_list: Sequence[ItemEntry] | None = None,
        name: str | None = None,
        again: bool = False,
    ) -> Done[Charge] | Open[Charge]:
        """Charges an approved card. ``customer_token`` is a stored customer (``cus_…``) or the gateway's token.

        With a client token it may be left out. By default the payment's name is the order's id.
        """
        members = {"customer_token": customer_token, "custom_1": custom_1, "custom_2": custom_2}
        optional = members | {"notify_url": notify_url, "itemList": entries(item_list)}
        asked = {"order_id": order_id, "items": items, "currency": currency, "amount": amount_of(amount)}
        return self._charge({"type": "PAYMENT"} | asked | optional, name or order_id, again=again)

    def authorize(
        self,
        *,
        order_id: str,
        items: str,
        currency: str,
        amount: Amount,
        customer_token: str | None = None,
        custom_1: str | None = None,
        custom_2: str | None = None,
        notify_url: str | None = None,
        item_list: Sequence[ItemEntry] | None = None,
        name: str | None = None,
        again: bool = False,
    ) -> Done[Charge] | Open[Charge]:
        """Authorizes an amount on an approved card, for a later capture by its ``authorization_token``."""
        members = {"customer_token": customer_token, "custom_1": custom_1, "custom_2": custom_2}
        optional = members | {"notify_url": notify_url, "itemList": entries(item_list)}
        asked = {"order_id": order_id, "items": items, "currency": currency, "amount": amount_of(amount)}
        return self._charge({"type": "AUTHORIZE"} | asked | optional, name or order_id, again=again)

    def capture(
        self,
        *,
        authorization_token: str,
        amount: Amount,
        description: str,
        name: str | None = None,
        again: bool = False,
    ) -> Done[Capture] | Open[Capture]:
        """Captures an authorized amount, or a part of it. With a store it needs a name, such as the order's id."""
        body = {
            "authorization_token": authorization_token,
            "amount": amount_of(amount),
            "description": description,
        }
        request = requests.post("/payments/capture", body)
        return self._effects.carry_out(Effect(request=request, kind="capture", name=name, again=again, read=Capture.of))

    def refund(
        self,
        *,
        payment_id: str,
        description: str,
        amount: Amount | None = None,
        name: str | None = None,
        again: bool = False,
    ) -> Done[str | None] | Open[str | None]:
        """Refunds all that is left of a payment, or a part of it; gives the gateway's number of the refund.

        The name of a whole refund is the payment's id. With a store a part needs a name, such as the return's number.
        Without a store two equal parts within the service's repeat window (24 hours) are one refund.
        """
        part = None if amount is None else amount_of(amount)
        body = {"payment_id": payment_id, "description": description, "amount": part}
        named = name or (payment_id if amount is None else None)
        request = requests.post("/payments/refund", body)
        return self._effects.carry_out(
            Effect(request=request, kind="refund", name=named, again=again, read=refund_number)
        )

    def void(
        self, *, authorization_token: str, description: str, name: str | None = None, again: bool = False
    ) -> Done[str | None] | Open[str | None]:
        """Voids an authorization, so that nothing is captured. With a store it needs a name."""
        body = {"authorization_token": authorization_token, "description": description}
        request = requests.post("/payments/refund", body)
        return self._effects.carry_out(Effect(request=request, kind="void", name=name, again=again, read=refund_number))

    def of_order(self, order_id: str, *, no_cache: bool = False) -> PaymentList:
        """Gives the successful payments of an order, as the gateway has them; none where there are none.

        With ``no_cache`` the gateway is asked anew: do so before you hand over goods or give money back.
        ``missing`` names payments that took money and that the gateway doesn't show yet. Where it shows none at all,
        and some took money, this raises Busy: the order isn't unpaid.
        """
        reply = self._sender.ask_for_list(requests.get(f"/payments/{requests.segment(order_id)}", no_cache=no_cache))
        return PaymentList(models(Payment, reply.data), reply.missing)

    def _charge(self, body: Mapping[str, object], name: str, *, again: bool) -> Done[Charge] | Open[Charge]:
        request = requests.post("/payments/charge", body)
        return self._effects.carry_out(Effect(request=request, kind="charge", name=name, again=again, read=Charge.of))
