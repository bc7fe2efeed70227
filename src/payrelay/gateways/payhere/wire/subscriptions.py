"""Reads the facts about subscriptions in the gateway's records. Pure.

An incomplete record gives no fact; the other records do.
"""

from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from payrelay.core.subscriptions.schedule import schedule_shown
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.gateways.payhere.wire.payment_records import moment_in
from payrelay.gateways.payhere.wire.reply_shapes import NO_AMOUNT, WrongShape, amount_in, id_in, members_of, text_in

STATES: Final = {
    "ACTIVE": SubscriptionState.ACTIVE,
    "COMPLETED": SubscriptionState.COMPLETED,
    "FAILED": SubscriptionState.STOPPED,
    "CANCELLED": SubscriptionState.STOPPED,
    "CANCELED": SubscriptionState.STOPPED,
}
"""The gateway's names of a subscription's states. Its names for a cancelled one are not documented."""

_records: Final = msgspec.json.Decoder(list[msgspec.Raw])


class _OfOrder(msgspec.Struct):
    order_id: object = None


_orders: Final = msgspec.json.Decoder(list[_OfOrder])


def records_of(order_id: str, raw_data: bytes) -> bytes:
    """Gives the records of one order from a list of records, as a list; an empty list for what is none. Never raises.

    A merchant may have thousands of records, and reading one takes many times as long as leaving it out.
    """
    try:
        orders = _orders.decode(raw_data)
        records = _records.decode(raw_data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b"[]"
    return (
        b"["
        + b",".join(record for record, each in zip(records, orders, strict=True) if each.order_id == order_id)
        + b"]"
    )


def plans_without(raw_data: bytes, subscription_ids: frozenset[str]) -> bytes:
    """Removes records from a list, by their numbers, and leaves the others byte for byte. Never raises.

    A record whose number or order can't be read is removed too, because its owner can't be found.
    """
    try:
        records = [bytes(record) for record in _records.decode(raw_data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b"[]"
    removed = {None, *subscription_ids}
    left = [record for record in records if _owned_number(record) not in removed]
    return b"[" + b",".join(left) + b"]"


def _owned_number(raw: bytes) -> str | None:
    """Gives the number of a subscription whose owner can be found; else None."""
    try:
        members = members_of(raw)
        subscription_id, order_id = id_in(members, "subscription_id"), text_in(members, "order_id")
    except (WrongShape, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if order_id is None else subscription_id


def facts_in(raw_data: bytes, timezone: str, *, seen_at_ms: int) -> tuple[Fact, ...]:
    """Gives the facts in a record or a list of records, as of the time of the question. Never raises."""
    try:
        records = _records.decode(raw_data) if raw_data.lstrip().startswith(b"[") else [msgspec.Raw(raw_data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    zone = ZoneInfo(timezone)
    return tuple(fact for record in records if (fact := _fact(bytes(record), zone, seen_at_ms)) is not None)


def _fact(raw: bytes, zone: ZoneInfo, seen_at_ms: int) -> Fact | None:
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
        began_at_ms=_began_at_ms(members, zone),
        schedule=schedule_shown(_text(members, "recurring") or ""),
        state=STATES.get(" ".join((status or "").upper().split())),
    )


def _text(members: dict[str, bytes], name: str) -> str | None:
    """Reads a text; None where it is none, which leaves the other facts valid."""
    try:
        return text_in(members, name)
    except WrongShape:
        return None


def _began_at_ms(members: dict[str, bytes], zone: ZoneInfo) -> int | None:
    """Reads the start of a subscription; None where it can't be read, which leaves the other facts valid."""
    try:
        return moment_in(text_in(members, "date"), zone)
    except WrongShape:
        return None
