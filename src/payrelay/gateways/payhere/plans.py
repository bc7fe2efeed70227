"""Reads the gateway's records of subscriptions, where they tell how one stands. Pure.

A record that is not whole tells nothing; the others beside it do.
"""

from typing import Final

import msgspec

from payrelay.core.subscriptions import GATEWAY_WORDS, Fact
from payrelay.gateways.payhere.replies import NO_AMOUNT, WrongShape, amount_in, id_in, members_of, text_in

_records: Final = msgspec.json.Decoder(list[msgspec.Raw])


def facts_in(raw_data: bytes, *, seen_at_ms: int) -> tuple[Fact, ...]:
    """Gives what a record or a list of records shows, as of the moment at which the gateway was asked. Never raises."""
    try:
        records = _records.decode(raw_data) if raw_data.lstrip().startswith(b"[") else [msgspec.Raw(raw_data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    return tuple(fact for record in records if (fact := _fact(bytes(record), seen_at_ms)) is not None)


def _fact(raw: bytes, seen_at_ms: int) -> Fact | None:
    try:
        members = members_of(raw)
        subscription_id = id_in(members, "subscription_id")
        order_id = text_in(members, "order_id")
        status = text_in(members, "status")
        currency = text_in(members, "currency")
        amount_minor = amount_in(members, "amount")
    except (WrongShape, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if subscription_id is None:
        return None
    return Fact(
        subscription_id=subscription_id,
        at_ms=seen_at_ms,
        is_seen=True,
        order_id=order_id,
        currency=currency,
        amount_minor=None if amount_minor == NO_AMOUNT else amount_minor,
        state=GATEWAY_WORDS.get(" ".join((status or "").upper().split())),
    )
