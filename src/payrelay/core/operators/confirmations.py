"""What an operator is asked to confirm before it is done, and what came of it.

Rules:

1. A confirmation is stored before its page is shown. Its id stands in the page's address, and the Idempotency-Key is
   made of it. So whatever a browser sends again is about the same act.
2. Only the step from ``shown`` or ``proposed`` to ``begun`` lets an act begin, and it is made once.
3. What is confirmed is what was shown: the thing acted on must still be as it was seen then.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.operators.roles import Act
from payrelay.core.payments.operation import State

SHOWN_MS: Final = 86_400_000
"""How long something that nobody has confirmed is kept: whoever comes back to it the next morning finds it."""
PROPOSED_MS: Final = 7 * 86_400_000
"""How long a second person may take. Later the reason may be forgotten, and it is proposed anew."""
_WITHOUT_FACTOR: Final = "without_second_factor"
STUCK_MS: Final = 60_000
"""After so long an act that has begun and not ended was left by a process that died."""


class ConfirmationState(StrEnum):
    """What has become of a confirmation."""

    SHOWN = "shown"
    """Nobody has confirmed it."""
    PROPOSED = "proposed"
    """One operator wants it, and a second person has to confirm it."""
    BEGUN = "begun"
    """It was confirmed. Where it is an operation, the operation says what is known of it."""
    DONE = "done"
    REFUSED = "refused"
    """Nothing was done."""
    WITHDRAWN = "withdrawn"


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """An act that an operator was shown to confirm.

    Attributes:
        id: ``cnf_`` and an id.
        act_name: the act, a value of ``Act``.
        subject: what is acted on: a noun and its id, such as ``operation/op_1``.
        account: the gateway account; empty where the act isn't on one.
        principal: for whose clients it is done, because the thing is theirs; empty where it is nobody's.
        order_id, amount_minor, currency: as the page shows them, where they are known.
        fields: what the operator filled in, as JSON; it has no secrets.
        seen: the state in which the operator saw the thing.
        state: see ConfirmationState.
        made_by, proposed_by, confirmed_by: ids of operators.
        reason: why, in the words of whoever proposed or confirmed it first.
        operation_id: the operation that came of it, where one did.
        said: what came of it, in words.
        version: counts the changes.
        act: the number of the line in the history that last changed this; 0 before that.
        made_at_ms, changed_at_ms: milliseconds since 1970, UTC.
    """

    id: str
    act_name: Act
    subject: str
    account: str
    principal: str
    order_id: str | None
    amount_minor: int | None
    currency: str | None
    fields: str
    seen: str
    state: ConfirmationState
    made_by: str
    proposed_by: str | None
    confirmed_by: str | None
    reason: str
    operation_id: str | None
    said: str
    version: int
    act: int
    made_at_ms: int
    changed_at_ms: int

    @property
    def idempotency_key(self) -> str:
        """The key of the operation that it begins."""
        return f"console-{self.id}"

    @property
    def filled(self) -> dict[str, str]:
        """What the operator filled in, by the names of the fields."""
        return msgspec.json.decode(self.fields, type=dict[str, str])


class SmallRefunds(msgspec.Struct, frozen=True):
    """How much an operator may refund in all, in hundredths, without the second factor since it was shown last.

    ``currency`` is the one of the limit; other currencies have limits of their own.
    """

    currency: str
    limit_minor: int


def next_of_confirmation(confirmation: Confirmation, at_ms: int, **members: object) -> Confirmation:
    """Gives the next version of a confirmation, with these members."""
    return msgspec.structs.replace(confirmation, version=confirmation.version + 1, changed_at_ms=at_ms, **members)


def is_over(confirmation: Confirmation, now_ms: int) -> bool:
    """True where nobody can confirm it any more, because it was shown or proposed too long ago."""
    limits = {ConfirmationState.SHOWN: SHOWN_MS, ConfirmationState.PROPOSED: PROPOSED_MS}
    limit = limits.get(confirmation.state)
    return limit is not None and now_ms - confirmation.made_at_ms >= limit


def is_stuck(confirmation: Confirmation, now_ms: int) -> bool:
    """True where it has begun and its process has died since, as far as can be told from the time."""
    return confirmation.state is ConfirmationState.BEGUN and now_ms - confirmation.changed_at_ms >= STUCK_MS


def without_factor(confirmation: Confirmation) -> Confirmation:
    """Marks a refund as one that needed no second factor; ``is_without_factor`` tells of it."""
    fields = msgspec.json.encode({**confirmation.filled, _WITHOUT_FACTOR: "yes"}).decode()
    return msgspec.structs.replace(confirmation, fields=fields)


def is_without_factor(confirmation: Confirmation) -> bool:
    """True for a refund that needed no second factor, because it and those before it were small."""
    return _WITHOUT_FACTOR in confirmation.filled


class KnownEnding(StrEnum):
    """What a page may truly say of an act."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "not known yet"


_NOT_DONE: Final = frozenset({State.DECLINED, State.REFUSED, State.NOT_SENT, State.FAILED})


def ending_of(state: State) -> KnownEnding:
    """Gives what the state of an operation says of the act that began it."""
    if state is State.SUCCEEDED:
        return KnownEnding.DONE
    return KnownEnding.REFUSED if state in _NOT_DONE else KnownEnding.UNKNOWN
