"""What operators are asked to confirm, in the store. A row whose digest is wrong counts as not existing."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final, TypeAlias

import msgspec

from payrelay.core.operators.confirmations import (
    SHOWN_MS,
    Confirmation,
    ConfirmationState,
    SmallRefunds,
    is_without_factor,
    without_factor,
)
from payrelay.core.operators.operator import NewAct, NotRecent, may_still
from payrelay.errors import Code, Outdated, Refusal
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.tables import StructTable, columns_for
from payrelay.store.operators.acts import OperatorActs

PROPOSED_MAX: Final = 200
"""The most that a list gives of what waits for a second person."""
PROPOSER_LOST_ROLE: Final = "whoever proposed this may no longer do it; withdraw it, and propose it anew"

_Confirmations: TypeAlias = list[Confirmation]


class Confirmations:
    """Stores confirmations; ``acts`` has the history of what operators do."""

    def __init__(self, database: Database, rows: RowDigests, acts: OperatorActs) -> None:
        self._database = database
        self._rows = rows
        self._acts = acts

    async def add(self, confirmation: Confirmation) -> None:
        """Stores what is about to be shown, and forgets what was shown long ago. Raises StoreError."""
        await self._database.write(self._added(confirmation))

    async def get(self, confirmation_id: str) -> Confirmation | None:
        """Reads one. Raises StoreError."""
        found = await self._read(Statement(GET_CONFIRMATION, (confirmation_id,)))
        return found[0] if found else None

    async def proposed(self) -> _Confirmations:
        """Reads what waits for a second person, oldest first. Raises StoreError."""
        return await self._read(Statement(LIST_PROPOSED, (PROPOSED_MAX,)))

    async def change(
        self, changed: Confirmation, act: NewAct, *, seen: int | None, small: SmallRefunds | None = None
    ) -> Confirmation | None:
        """Stores the next version together with its line in the history, and returns it as it is stored.

        ``seen`` is the newest line about the thing that whoever changes it saw; None where that doesn't matter. None
        where another change, or another line, came first. ``small`` is given for a refund that needs no second factor
        as long as those together are small. Raises Refusal: forbidden where whoever acts may not any more; conflict
        where the one who proposed it may not. Raises NotRecent where the refunds together are too much. Nothing is
        stored then. Raises StoreError.
        """
        try:
            return await self._acts.written(lambda: self._changed(changed, act, seen, small))
        except Outdated:
            return None

    async def end(self, ended: Confirmation) -> bool:
        """Stores what came of it; False where that is stored already. Raises StoreError."""
        statement = msgspec.structs.replace(self._put(CHANGE_CONFIRMATION, ended), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    def _added(self, confirmation: Confirmation) -> Unit[None]:
        yield Statement(FORGET_SHOWN, (confirmation.made_at_ms - SHOWN_MS,))
        yield self._put(ADD_CONFIRMATION, confirmation)

    def _changed(
        self, changed: Confirmation, act: NewAct, seen: int | None, small: SmallRefunds | None
    ) -> Unit[Confirmation | None]:
        if seen is not None and (yield from self._acts.unseen(act.subject, seen)):
            return None
        line = yield from self._acts.appended(act, changed.act_name)
        is_first = seen is not None and changed.state is ConfirmationState.BEGUN
        proposer = None if changed.proposed_by is None else (yield from self._acts.operator(changed.proposed_by))
        if is_first and changed.proposed_by is not None and not may_still(proposer, changed.act_name):
            raise Refusal(Code.CONFLICT, PROPOSER_LOST_ROLE)
        if small is not None and changed.state is ConfirmationState.BEGUN:
            yield from self._together(changed, act, small)
            changed = without_factor(changed)
        numbered = msgspec.structs.replace(changed, act=line.number)
        if not (yield self._put(CHANGE_CONFIRMATION, numbered)):
            raise Outdated("somebody has confirmed it")
        return numbered

    def _together(self, changed: Confirmation, act: NewAct, small: SmallRefunds) -> Unit[None]:
        """Raises NotRecent where a refund and those before it are too much; behind its line no other comes between."""
        parameters = (act.operator_id, small.currency)
        rows = yield Statement(REFUNDED_SINCE, parameters)
        known = self._rows.verifier().values(CONSOLE_CONFIRMATIONS, rows)
        others = [each for each in known if each.id != changed.id]
        small_ones = filter(is_without_factor, others)
        if sum(each.amount_minor or 0 for each in (changed, *small_ones)) > small.limit_minor:
            raise NotRecent(changed.act_name)

    def _put(self, query: Query, confirmation: Confirmation) -> Statement:
        return Statement(query, self._rows.key.digested(CONSOLE_CONFIRMATIONS, CONSOLE_CONFIRMATIONS.row(confirmation)))

    async def _read(self, statement: Statement) -> _Confirmations:
        return await self._rows.values(CONSOLE_CONFIRMATIONS, await self._database.read(all_rows(statement)))


CONSOLE_CONFIRMATIONS: Final = StructTable(
    name="console_confirmations", kind=Confirmation, columns=columns_for(Confirmation)
)

ADD_CONFIRMATION: Final = query(
    f"""
    {CONSOLE_CONFIRMATIONS.insert()}
    RETURNING id""",
)
"""Adds a confirmation."""

CHANGE_CONFIRMATION: Final = query(
    f"""
    UPDATE console_confirmations SET {CONSOLE_CONFIRMATIONS.replaced}
    WHERE id = $1 AND version = $18 - 1
    RETURNING id""",
)
"""Replaces a row by its next version; gives no row where another change came first."""

GET_CONFIRMATION: Final = query(f"{CONSOLE_CONFIRMATIONS.select} WHERE id = $1")
"""Reads one confirmation."""

REFUNDED_SINCE: Final = query(
    f"""
    {CONSOLE_CONFIRMATIONS.select}
    WHERE act > (SELECT coalesce(max(act), 0) FROM console_sessions WHERE operator_id = $1 AND stage = 'open')
        AND confirmed_by = $1 AND act_name = 'refund' AND currency = $2 AND state IN ('begun', 'done')""",
)
"""Reads the refunds that an operator has confirmed since they signed in, or showed the second factor, last."""

LIST_PROPOSED: Final = query(
    f"""
    {CONSOLE_CONFIRMATIONS.select}
    WHERE state = 'proposed' ORDER BY made_at_ms LIMIT $1""",
)
"""Reads what waits for a second person, oldest first."""

FORGET_SHOWN: Final = query(
    "DELETE FROM console_confirmations WHERE state = 'shown' AND made_at_ms < $1 RETURNING id",
)
"""Removes what was shown before a time, and confirmed by nobody."""
