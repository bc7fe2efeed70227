"""Requires, when an operation is stored, that nothing on the same thing has changed since the gateway was looked at."""

from typing import Final

import msgspec

from payrelay.core.payments.operation import Operation
from payrelay.errors import Code, Refusal
from payrelay.store.engine.database import Unit
from payrelay.store.payments.journal import Condition
from payrelay.store.payments.resolution import Standing, standing_of

CHANGED_SENTENCE: Final = (
    "another operation on the same order, payment or subscription came while the service looked for an earlier try of"
    " this request; this request was not sent"
)


def unchanged_since(operation: Operation, standing: Standing, also: Condition | None) -> Condition:
    """Returns the condition that the other operations on what an operation acts on still stand as they did.

    ``also`` is a further condition. It raises Refusal (unavailable) where one came or was changed. By then the guard of
    the new operation keeps all others out.
    """

    def unchanged(operation_id: str) -> Unit[None]:
        if also is not None:
            yield from also(operation_id)
        own = msgspec.structs.replace(operation, id=operation_id)
        if (yield from standing_of(own)) != standing:
            raise Refusal(Code.UNAVAILABLE, CHANGED_SENTENCE)

    return unchanged
