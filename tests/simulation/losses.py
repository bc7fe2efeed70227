"""What a life loses whose database goes back in time, and what is known of that afterwards.

Few lives lose anything. It is drawn from a sequence of its own, so that a life without a loss is as it was.
"""

import dataclasses
from collections.abc import Container
from random import Random
from typing import Final, Literal, NamedTuple

from payrelay.core.payments.operation import SEND_WITHIN_S, JournalEntry

START_MS: Final = 1_788_244_200_000
"""The simulated gateway's standing clock begins then."""
LOSS_SHARE: Final = 1 / 8
"""Of the lives, those whose database goes back in time."""
LAG_S: Final = 600.0
"""How long the gateway may take to show an effect: what PAYRELAY_RECOVERY_LAG is by default."""
SHOWN_WITHIN_S: Final = LAG_S - 10.0
"""In such a life the gateway shows an effect of the lost window within that time."""
KNOWN_AFTER_S: Final = 2.0
"""How soon every process knows that a key was revoked, that its server is another one, and that a recovery began."""
REDONE_AFTER_S: Final = 30.0
"""How soon a job has done again what was revoked, on a disk that takes its time."""
STRAYS_S: Final = 60.0
"""How long after the loss a call of a dead process may still arrive."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LossFate:
    """How the database goes back in time.

    Attributes:
        copied_s: when the copy is taken that takes the database's place.
        lost_s: when it does.
        begins_after_s: how long after that an operator begins the recovery, where the marks keep the effects back.
        outside: what becomes of the marks and of the list of revocations: they are ``kept``, an ``older`` copy of them
            comes back with the database, or they are ``gone``.
        hides_s: how late the gateway shows the effects of the lost window.
        is_ended: whether an operator ends the recovery; otherwise it ends by itself.
        is_outlived: whether processes that share a server go on over the one that takes its place.
        is_stopped: whether an operator stops the processes before the copy takes the database's place; otherwise they
            die.
    """

    copied_s: float
    lost_s: float
    begins_after_s: float
    outside: Literal["kept", "older", "gone"]
    hides_s: float
    is_ended: bool
    is_stopped: bool = False
    is_outlived: bool = False

    @classmethod
    def of(cls, draw: Random) -> "LossFate | None":
        """Draws it; None for a life that loses nothing."""
        if draw.random() >= LOSS_SHARE:
            return None
        return cls.drawn(draw)

    @classmethod
    def drawn(cls, draw: Random) -> "LossFate":
        """Draws one of a life that loses something."""
        copied_s = draw.choice((0.5, 2.0, 10.0, 30.0, 90.0)) * draw.uniform(0.3, 1.7)
        return cls(
            copied_s=copied_s,
            lost_s=copied_s + draw.choice((3.0, 15.0, 40.0, 90.0, 400.0, 3_000.0)) * draw.uniform(0.5, 1.5),
            begins_after_s=draw.choice((0.0, 5.0, 60.0, 600.0)),
            outside=draw.choice(("kept", "kept", "kept", "older", "gone")),
            hides_s=draw.choice((0.0, 0.0, 60.0, SHOWN_WITHIN_S)),
            is_ended=draw.random() < 0.7,
            is_stopped=draw.random() < 0.3,
            is_outlived=draw.random() < 0.5,
        )

    def is_lost_at(self, at_s: float) -> bool:
        """Tells whether what is committed, or arrives at the gateway, at that time may be in no book afterwards."""
        return self.copied_s <= at_s < self.lost_s + STRAYS_S


class LostOperation(NamedTuple):
    """An operation that is in no book any more, as its row said at last."""

    id: str
    kind: str
    state: str
    principal: str
    idempotency_key: str | None
    fingerprint: str
    request_id: str
    order_id: str | None

    @property
    def claim(self) -> tuple[str, str | None, str]:
        """What is equal in all that is one request to its client."""
        return self.principal, self.idempotency_key, self.fingerprint


@dataclasses.dataclass(kw_only=True, slots=True)
class Loss:
    """What was lost, and when the recovery from it began and ended; None where it hasn't yet.

    Attributes:
        copied_s, lost_s: the time whose commits are lost.
        operations: those that were lost, by their ids.
        checkout_ids: of the checkouts that were lost.
        order_ids: of all these.
        customer_ids: of the customers whose removal was lost, with the list of revocations that had it.
        is_outlived: whether processes have gone on over the copy.
        since_ms: since when commits are lost, as the operator said who began the recovery.
    """

    copied_s: float
    lost_s: float
    operations: dict[str, LostOperation]
    checkout_ids: frozenset[str]
    order_ids: frozenset[str]
    customer_ids: frozenset[str]
    is_outlived: bool
    since_ms: int | None = None
    began_s: float | None = None
    ended_s: float | None = None

    def forget_found(self, operation_ids: Container[str]) -> int:
        """Leaves out operations that are in the books all the same, and gives how many there are.

        Processes that went on have brought them back.
        """
        found = [id_ for id_ in self.operations if id_ in operation_ids]
        self.operations = {id_: each for id_, each in self.operations.items() if id_ not in found}
        return len(found)

    @property
    def known_s(self) -> float:
        """Since when every process that has gone on knows of the loss."""
        return self.lost_s if not self.is_outlived or self.began_s is None else self.began_s + KNOWN_AFTER_S

    @property
    def redone_s(self) -> float:
        """Since when every process has done again what was revoked: at its start, or by a job where it has gone on."""
        return self.lost_s if not self.is_outlived or self.began_s is None else self.began_s + REDONE_AFTER_S

    def is_in_flight(self, operation_id: str | None, at_s: float) -> bool:
        """Tells whether an operation was stored before the loss, and may go out now from a process that has gone on."""
        return self.is_outlived and operation_id in self.operations and at_s <= self.lost_s + SEND_WITHIN_S

    def is_new_at(self, at_s: float) -> bool:
        """Tells whether processes that have gone on are only getting to know of the recovery."""
        return self.is_outlived and self.began_s is not None and at_s < self.redone_s

    def is_told_of(self, heard_at_s: float) -> bool:
        """Tells whether what was heard then may be in no book any more."""
        return self.copied_s <= heard_at_s <= self.lost_s

    def has_opened(self, told_at_s: float, asked_at_s: float) -> bool:
        """Tells whether what was told of may have lost its owner, and the end of the recovery has opened it to all."""
        return self.is_told_of(told_at_s) and self.ended_s is not None and asked_at_s >= self.ended_s

    def has_lost_removal(self, customer_id: str, told_at_s: float) -> bool:
        """Tells whether nothing says any more that a customer was removed, of which somebody was told then."""
        return customer_id in self.customer_ids and self.is_told_of(told_at_s)

    def is_after(self, entry: JournalEntry) -> bool:
        """Tells whether an entry of a history was made after the loss."""
        return entry.at_ms >= START_MS + self.lost_s * 1000
