"""What a call that moves money comes to, without a doubt left out."""

from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

Data_co = TypeVar("Data_co", covariant=True)

WITH_PERSON: Final = frozenset({"needs_attention", "held"})
"""States in which an operator must decide, which takes hours."""


@dataclass(frozen=True, kw_only=True)
class Done(Generic[Data_co]):
    """It took effect.

    Attributes:
        data: what came of it.
        operation_id: names it.
        is_replay: whether an earlier call did it, and this one did nothing more.
        request_id: finds the request in the service's log.
    """

    data: Data_co
    operation_id: str | None = None
    is_replay: bool = False
    request_id: str | None = None
    is_done: Literal[True] = field(default=True, init=False)


@dataclass(frozen=True, kw_only=True)
class OpenEnd(Generic[Data_co]):
    """Nobody knows yet whether it took effect: the money may have moved.

    Say that you wait for the payment, and take it by no other way. The same call later asks again, and charges nobody
    twice.

    Attributes:
        reason: a code of the service's, or ``no_answer``, ``time_out``, ``unreadable_answer``.
        message: for people.
        operation_id: names it, where it is known.
        is_with_person: whether an operator must decide, which may take a day.
        retry_after_s: the seconds after which asking again may help.
        request_id: finds the last request in the service's log.
    """

    reason: str
    message: str
    operation_id: str | None = None
    is_with_person: bool = False
    retry_after_s: float | None = None
    request_id: str | None = None
    is_done: Literal[False] = field(default=False, init=False)
