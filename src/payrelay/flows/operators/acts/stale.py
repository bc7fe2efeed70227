"""Whether what an operator's page showed is still so, and what has changed where it isn't."""

from typing import Final

from payrelay.core.moments import spoken
from payrelay.core.payments.explanations import sentence_of
from payrelay.errors import PayrelayError
from payrelay.flows.operators.acting import STANDING_MARK, ActTarget
from payrelay.flows.operators.parts import OperatorParts
from payrelay.flows.refunds.refundable_money import all_of
from payrelay.flows.relay import Relay

LINES_MAX: Final = 50
"""Lines about one thing that a page shows."""
_DIGITS_MAX: Final = 17
"""As many as the number of a line, or of a version, has."""


class StalePageError(PayrelayError):
    """The page shows what is no more, and nothing was done; ``changes`` tell what is otherwise now, oldest first."""

    def __init__(self, target: ActTarget, changes: list[str]) -> None:
        super().__init__("the page shows what is no more")
        self.target = target
        self.changes = changes


async def seen_now(parts: OperatorParts, target: ActTarget) -> str:
    """Returns what a form of a page about a thing has to name: its state, and the newest line about it."""
    lines = await parts.acts.about(target.subject, 1)
    return f"{target.seen}.{lines[0].number if lines else 0}"


def line_of(seen: str) -> int:
    """Gives the number of the newest line that a page showed; 0 where it showed none, or the text is no such text."""
    return _number(seen.rpartition(".")[2]) or 0


async def require_fresh(parts: OperatorParts, relay: Relay, target: ActTarget, seen: str, *, own_line: int = 0) -> None:
    """Raises StalePageError where a thing, or what was written about it, is no more as a page showed it.

    ``own_line`` is the line that a proposal itself wrote later. Raises StoreError.
    """
    lines = await parts.acts.about(target.subject, LINES_MAX)
    newest = max(line_of(seen), own_line)
    unread = [line for line in reversed(lines) if line.number > newest]
    if seen.rpartition(".")[0] == target.seen and not unread:
        return
    changes = await _changes_since(relay, target, seen)
    changes += [
        f"{spoken(line.at_ms)} UTC: {line.name}: {line.act.replace('_', ' ')}"
        + (f", {line.details}" if line.details else "")
        + (f" (“{line.reason}”)" if line.reason else "")
        for line in unread
    ]
    raise StalePageError(target, changes)


async def _changes_since(relay: Relay, target: ActTarget, seen: str) -> list[str]:
    before, _, standing = seen.rpartition(".")[0].partition(STANDING_MARK)
    now, _, standing_now = target.seen.partition(STANDING_MARK)
    money = [] if target.money is None or standing == standing_now else [f"Of its money: {all_of(target.money)}"]
    version = _number(before)
    if target.operation is None or version is None:
        return ([] if before == now else [f"It is now: {target.state}"]) + money
    history = await relay.journal.history(target.id)
    changes = [f"{spoken(entry.at_ms)} UTC: {sentence_of(entry)}" for entry in history if entry.version > version]
    return changes + money


def _number(text: str) -> int | None:
    """Gives a number that a form names; None for whatever else somebody puts there, such as thousands of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None
