"""The identity of a database, and how often its history began anew.

A database that was restored or promoted may lack commits that its clients were told of. From then on it is another
*incarnation* of the same database. The time whose commits may be lost is its *lost window*.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.payments.operation import Retention

MOVED: Final = (
    "its tables were made anew since: a copy was restored, or the database was moved, and no recovery has begun"
)
"""Why a database is behind whose newest incarnation didn't begin where it is."""


class Beginning(StrEnum):
    """Why an incarnation began."""

    CREATED = "created"
    """The database was made."""
    RECOVERED = "recovered"
    """Commits were lost: an older backup was restored, or a standby without the newest commits was promoted."""
    COPIED = "copied"
    """The database was copied into another one, whole; nothing was lost."""


class LostWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The time whose commits may be lost, in ms since 1970, UTC; both ends belong to it."""

    since_ms: int
    until_ms: int


class ImportedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of the gateway's payments that an operator fed into a recovery.

    Attributes:
        digest: SHA-256 of the file, in hexadecimal.
        account: the account whose payments it has.
        at_ms: when it was fed in first, in ms since 1970, UTC.
        operator: by whom.
        verdicts: how many of its payments came to which verdict (``core.recovery.gateway_reports.ReportVerdict``).
        paid_order: an order that it says is paid, for control queries; None where it has none that is old enough.
    """

    digest: str
    account: str
    at_ms: int
    operator: str
    verdicts: dict[str, int]
    paid_order: str | None = None


class Incarnation(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of a database's history.

    Attributes:
        number: 1 for the first one; each further one has a higher one.
        reason: why it began.
        began_at_ms: when, in ms since 1970, UTC.
        lost: the time whose commits may be lost; only where commits were lost.
        ended_recovery_at_ms: when its recovery ended; None while it lasts, and where nothing was lost.
        acknowledged: when each principal acknowledged that it has repeated whatever it sent in the lost window.
        operator: who began it, for an operator's command.
        note: why, in that operator's words.
        place: the tables in which it began, by what the server alone can give them; empty for an embedded database.
        reports: the reports of the gateway's payments that were fed in, the oldest first.
        behind: why the database counts as behind in this incarnation, in words; empty where it doesn't. No process lets
            anything take effect then.
    """

    number: int
    reason: Beginning
    began_at_ms: int
    lost: LostWindow | None = None
    ended_recovery_at_ms: int | None = None
    acknowledged: dict[str, int] = {}
    operator: str = ""
    note: str = ""
    place: str = ""
    reports: tuple[ImportedReport, ...] = ()
    behind: str = ""

    @property
    def is_recovering(self) -> bool:
        """Whether a request may still come again whose first try was lost with the commits."""
        return self.lost is not None and self.ended_recovery_at_ms is None

    @property
    def is_moved(self) -> bool:
        """Whether it is read in other tables than those in which it began (``DatabaseIdentity.in_place``)."""
        return self.behind == MOVED


class DatabaseIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which database it is: a random id that it keeps for good, and its incarnations, the oldest first.

    ``copied_to`` names the database that took its place; empty where none did. Nothing takes effect on it from then on.
    """

    id: str
    incarnations: tuple[Incarnation, ...]
    copied_to: str = ""

    @property
    def current(self) -> Incarnation:
        """The newest incarnation."""
        return self.incarnations[-1]

    def with_current(self, current: Incarnation) -> "DatabaseIdentity":
        """Gives the identity with another newest incarnation."""
        return msgspec.structs.replace(self, incarnations=(*self.incarnations[:-1], current))

    def in_place(self, place: str) -> "DatabaseIdentity":
        """Gives the identity as it counts in the tables of a place: behind, where its incarnation began in others.

        A restored dump has the identity of its origin. What was committed there since is not in it.
        """
        current = self.current
        return self if current.place == place else self.with_current(msgspec.structs.replace(current, behind=MOVED))

    @property
    def has_lost_commits(self) -> bool:
        """Whether commits of this database may be lost, in any of its incarnations."""
        return any(each.lost is not None for each in self.incarnations)

    @property
    def first_lost_ms(self) -> int | None:
        """When the earliest lost window began, in ms since 1970, UTC; None where nothing was lost."""
        return min((each.lost.since_ms for each in self.incarnations if each.lost is not None), default=None)

    def may_have_lost(self, at_ms: int) -> bool:
        """Whether a lost window began before a time (ms since 1970, UTC), and its recovery had not ended by then."""
        return any(
            each.lost.since_ms <= at_ms and (each.ended_recovery_at_ms is None or at_ms <= each.ended_recovery_at_ms)
            for each in self.incarnations
            if each.lost is not None
        )


def is_recovered_since(before: DatabaseIdentity, now: DatabaseIdentity) -> bool:
    """Tells whether a recovery has begun that an earlier reading of the identity doesn't have; a copy is none."""
    known = _begun(before)
    return any(
        each.reason is Beginning.RECOVERED and (each.number, each.began_at_ms) not in known for each in now.incarnations
    )


def lost_since(before: DatabaseIdentity, now: DatabaseIdentity) -> str | None:
    """Says in words what an identity lacks that an earlier reading has; None where a recovery accounts for it."""
    if is_recovered_since(before, now):
        return None
    if before.id != now.id:
        return "it is another database than before"
    missing = _begun(before) - _begun(now)
    return f"it lacks its incarnation {min(missing)[0]}" if missing else None


def _begun(identity: DatabaseIdentity) -> set[tuple[int, int]]:
    return {(each.number, each.began_at_ms) for each in identity.incarnations}


def wait_until_shown_ms(lost: LostWindow, shown_after_ms: int, *, now_ms: int, known_for_ms: int) -> int:
    """Gives how long the gateway may not show yet what was begun in a lost window, in ms; 0 or less where it does.

    The window's end is as right as the clock of the machine on which the recovery was begun. Where that was ahead, the
    end is in the future. But the window had ended when a process first saw the recovery: ``known_for_ms`` ago, by a
    steady clock. So no wait is longer than ``shown_after_ms`` from then on.
    """
    return min(lost.until_ms + shown_after_ms - now_ms, shown_after_ms - known_for_ms)


def repeats_end_at_ms(incarnation: Incarnation, retention: Retention) -> int:
    """Gives until when a request that was lost may come again, in ms since 1970; a recovery ends by itself then."""
    until_ms = incarnation.began_at_ms if incarnation.lost is None else incarnation.lost.until_ms
    return until_ms + max(retention.keyed_ms, retention.unkeyed_ms)
