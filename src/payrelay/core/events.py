"""Events: what is told to those who registered for it, once for each change of an operation, customer or checkout."""

from typing import TypeAlias

import msgspec

Plain: TypeAlias = "str | int | bool | None"
"""What an event's data may hold; nothing secret, and of a person nothing but what an answer shows too."""


class OutgoingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, as it is told.

    Attributes:
        id: ``evt_…``; the same however often it is sent.
        type: ``<noun>.<what happened>``, such as ``customer.created``.
        account: the gateway account that it happened on.
        merchant: whose account that is.
        principal: who is told of it.
        subject: what it is about, such as ``customer:cus_…``; events of one subject are told in their order.
        at_ms: when, in milliseconds since 1970, UTC.
        data: what the receiver is told beyond that.
    """

    id: str
    type: str
    account: str
    merchant: str
    principal: str
    subject: str
    at_ms: int
    data: dict[str, Plain]
