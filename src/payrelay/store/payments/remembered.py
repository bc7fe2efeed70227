"""Remembers the newest commits about operations, so that a process can store them again that outlives their database.

Rules:

1. A commit is remembered only after it was acknowledged, as the very rows that were stored. So what comes back is what
   clients were told, with its hashes, seals and digests.
2. Only an operation comes back that the gateway has answered: nothing changes it any more. What was open when commits
   were lost is better looked for at the gateway.
3. What comes back never takes the place of anything: where another operation holds the claim or the guard by now, or
   the operation went on otherwise, nothing is stored.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from payrelay.core.payments.operation import Operation, State
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.statements.payments import marks as statements

KEPT_MS: Final = 300_000
"""The last minutes: longer than a standby is behind, and a failover lasts."""
COMMITS_MAX: Final = 4_000
"""Of a busy service these are the last minutes too; each takes about three kilobytes."""
ANSWERED: Final = frozenset({State.SUCCEEDED, State.DECLINED, State.REFUSED})
"""The states of an operation that the gateway has answered for good."""


class RememberedCommit(NamedTuple):
    """A version of an operation that the database acknowledged at a time (ms since 1970, UTC).

    ``again`` makes the unit that stores it again, and gives False where the version before isn't there, or something is
    in its way.
    """

    operation: Operation
    at_ms: int
    again: Callable[[], Unit[bool]]


class RememberedCommits:
    """The newest commits that a process was told of; ``commits_max`` of 0 remembers none.

    Attributes:
        commits_max: how many are remembered.
        is_under_way: a task is storing them again.
    """

    def __init__(self, commits_max: int = 0) -> None:
        self.commits_max = commits_max
        self._commits: deque[RememberedCommit] = deque()
        self.is_under_way = False

    def note(self, commit: RememberedCommit) -> None:
        """Remembers a commit, and forgets those that are too old or too many."""
        if not self.commits_max:
            return
        self._commits.append(commit)
        while len(self._commits) > self.commits_max or self._commits[0].at_ms < commit.at_ms - KEPT_MS:
            self._commits.popleft()

    async def bring_back(self, database: Database) -> list[Operation]:
        """Stores again what is missing of the answered operations; gives these operations, in their newest versions.

        May be repeated, and goes on where it was cut off. Raises StoreError.
        """
        versions: dict[str, list[RememberedCommit]] = {}
        for commit in self._commits:
            versions.setdefault(commit.operation.id, []).append(commit)
        back: list[Operation] = []
        for commits in versions.values():
            newest = commits[-1].operation
            if newest.state in ANSWERED and await database.write(_stored_again(commits)):
                back.append(newest)
        return back


def _stored_again(commits: list[RememberedCommit]) -> Unit[bool]:
    """Stores the missing versions of one operation; gives whether there were any, and the newest one is there now."""
    is_new = False
    for commit in commits:
        operation = commit.operation
        rows = yield Statement(statements.ENTRY_HASH, (operation.id, operation.version))
        if not rows and not (yield from commit.again()):
            return False
        is_new = not rows
    return is_new
