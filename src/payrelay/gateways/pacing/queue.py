"""The queue of callers that wait for a permit.

Rules:

1. An access token comes first. Resolution comes before reads and after effects, and it has a share of its own.
2. All others take turns: the principals that wait, the parts of each principal, and the apps of each part. So a caller
   waits for at most one permit of each other principal, whatever that one asks for.
3. The callers of one consumer are served by priority, and in the order of their arrival within one.
"""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator
from enum import IntEnum
from typing import Final, TypeAlias

from payrelay.core.calls import CancelSubscription, Effect, Refund, Void
from payrelay.core.gateways.fair_shares import PAYRELAY, BudgetShare, Consumer, Requester
from payrelay.core.gateways.permit_grants import PermitGrant

RESOLUTION_SHARE: Final = 10
"""While resolution waits, one permit goes to it after so many others. An outage leaves many operations to resolve, and
a shop may use its whole budget day and night."""


class Priority(IntEnum):
    """The priority of a call among those of one consumer; the smaller number is served first."""

    TOKEN = 0
    """An access token, for which callers that already have their turn wait."""
    CHARGE = 1
    """Charges, authorizations, captures and retries: a customer is waiting."""
    GIVE_BACK = 2
    """Refunds, voids and cancellations."""
    RESOLUTION = 3
    READ = 4


_EFFECTS: Final = frozenset({Priority.CHARGE, Priority.GIVE_BACK})


def priority_of(call: Effect) -> Priority:
    """Gives the priority of an effect."""
    return Priority.GIVE_BACK if isinstance(call, Refund | Void | CancelSubscription) else Priority.CHARGE


class Waiter:
    """A caller that waits. ``granted`` becomes its grant with the time at which the budget was asked, or None.

    Attributes:
        consumer: whose share of the budget the permit is taken from.
        until_s: the time after which the caller has no use for a permit.
        is_patient: whether the caller waits where no permit is free now.
    """

    __slots__ = ("consumer", "granted", "is_patient", "priority", "until_s")

    def __init__(
        self, priority: Priority, until_s: float | None, now_s: float, consumer: Consumer | None = None
    ) -> None:
        self.priority = priority
        self.consumer = consumer_of(PAYRELAY, priority) if consumer is None else consumer
        self.is_patient = until_s is not None and until_s > now_s
        self.until_s = until_s if until_s is not None and self.is_patient else float("inf")
        self.granted: asyncio.Future[tuple[PermitGrant, float] | None] = asyncio.get_running_loop().create_future()


def consumer_of(requester: Requester, priority: Priority) -> Consumer:
    """Gives the consumer that a call with this priority counts for."""
    if priority is Priority.TOKEN:
        return Consumer("", BudgetShare.TOKEN)
    if not requester.app:
        return Consumer(requester.principal, BudgetShare.KEYS)
    return Consumer(
        requester.principal, BudgetShare.READS if priority is Priority.READ else BudgetShare.EFFECTS, requester.app
    )


class PermitQueue:
    """The callers that wait for a permit.

    ``_lines`` are those of each consumer. The order of the principals, of the parts of a principal and of the apps of a
    part is that of their turns: who gets a permit goes to the end.
    """

    def __init__(self) -> None:
        self._tokens = _line()
        self._resolution = _line()
        self._lines: dict[str, dict[BudgetShare, dict[str, _Line]]] = {}
        self._waiting: Counter[Priority] = Counter()
        self._since_resolution = 0

    def __len__(self) -> int:
        return self._waiting.total()

    def push(self, waiter: Waiter) -> None:
        """Adds a caller behind all of its consumer and priority."""
        self._line_of(waiter)[waiter.priority].append(waiter)
        self._waiting[waiter.priority] += 1

    def wanted(self, limit: int, *, without: Container[Consumer] = ()) -> list[Consumer]:
        """Gives the consumers of the next callers in the order of their turns, each as often as it has a turn.

        A part as a whole in ``without`` stands for all its apps.
        """
        consumers = (waiter.consumer for waiter in self._in_turn())
        ready = (each for each in consumers if each not in without and each.whole_part not in without)
        return list(itertools.islice(ready, limit))

    def pop(self, consumer: Consumer, now_s: float) -> Waiter | None:
        """Removes the caller of a consumer that gets its next permit; None where none of them waits.

        A caller whose time is over gets None, and is passed over.
        """
        while (waiter := next((each for each in self._in_turn() if each.consumer == consumer), None)) is not None:
            is_late = waiter.until_s < now_s
            if not waiter.granted.done() and not is_late:
                self._since_resolution = 0 if waiter.priority is Priority.RESOLUTION else self._since_resolution + 1
                self._end_turn(consumer)
                self.remove(waiter)
                return waiter
            self.remove(waiter)
            if is_late and not waiter.granted.done():
                waiter.granted.set_result(None)
        return None

    def remove(self, waiter: Waiter) -> None:
        """Removes a caller that no longer waits."""
        line = self._line_of(waiter)
        if waiter in line[waiter.priority]:
            line[waiter.priority].remove(waiter)
            self._waiting[waiter.priority] -= 1
        self._forget_empty(waiter.consumer)

    def take_out(self, *, is_patient: bool) -> list[Waiter]:
        """Removes all callers that wait where no permit is free, or all that don't."""
        found = [waiter for waiter in self._in_turn() if waiter.is_patient is is_patient]
        for waiter in found:
            self.remove(waiter)
        return found

    def priority(self) -> Priority | None:
        """Gives the highest priority among the callers that wait; None where no caller waits."""
        return min((priority for priority, count in self._waiting.items() if count), default=None)

    def _in_turn(self) -> Iterator[Waiter]:
        """Goes through all callers in the order in which they would be served."""
        yield from _by_priority(self._tokens)
        resolution, since = _by_priority(self._resolution), self._since_resolution
        others = _turn_by_turn(
            _turn_by_turn(_turn_by_turn(map(_by_priority, apps.values())) for apps in parts.values())
            for parts in self._lines.values()
        )
        effects = self._waiting[Priority.CHARGE] + self._waiting[Priority.GIVE_BACK]
        while True:
            is_resolution = since >= RESOLUTION_SHARE or not effects
            waiter = (next(resolution, None) if is_resolution else None) or next(others, None) or next(resolution, None)
            if waiter is None:
                return
            since = 0 if waiter.priority is Priority.RESOLUTION else since + 1
            effects -= waiter.priority in _EFFECTS
            yield waiter

    def _line_of(self, waiter: Waiter) -> "_Line":
        if waiter.priority is Priority.TOKEN:
            return self._tokens
        if waiter.priority is Priority.RESOLUTION:
            return self._resolution
        principal, part, app = waiter.consumer
        return self._lines.setdefault(principal, {}).setdefault(part, {}).setdefault(app, _line())

    def _end_turn(self, consumer: Consumer) -> None:
        principal, part, app = consumer
        if principal in self._lines:
            parts = self._lines[principal] = self._lines.pop(principal)
            if part in parts:
                apps = parts[part] = parts.pop(part)
                if app in apps:
                    apps[app] = apps.pop(app)

    def _forget_empty(self, consumer: Consumer) -> None:
        principal, part, app = consumer
        parts = self._lines.get(principal, {})
        apps = parts.get(part, {})
        if app in apps and not any(apps[app].values()):
            del apps[app]
        if part in parts and not apps:
            del parts[part]
        if principal in self._lines and not parts:
            del self._lines[principal]


_Line: TypeAlias = dict[Priority, deque[Waiter]]


def _line() -> _Line:
    return {priority: deque() for priority in Priority}


def _by_priority(line: _Line) -> Iterator[Waiter]:
    return itertools.chain.from_iterable(line.values())


def _turn_by_turn(lines: Iterable[Iterator[Waiter]]) -> Iterator[Waiter]:
    """Takes one caller of each line in turn."""
    waiting = deque(lines)
    while waiting:
        line = waiting.popleft()
        waiter = next(line, None)
        if waiter is not None:
            yield waiter
            waiting.append(line)
