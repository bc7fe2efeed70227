"""Principals in the store: their other names, and their groups.

Each row lets somebody act on what isn't theirs. It counts only with its keyed digest, as all rows of
``store.digests.rows`` do.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.access.ownership import NOBODY
from payrelay.errors import Outdated, RowForged
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.engine.rows import StructT, struct_of
from payrelay.store.engine.tables import Table
from payrelay.store.statements.access import owners as owner_statements
from payrelay.store.statements.access import principals as statements
from payrelay.store.statements.access.principals import PRINCIPAL_GROUPS, PRINCIPAL_NAMES

PRINCIPALS_MAX: Final = 10_000
"""The most that a list gives; a merchant has a handful."""


class PrincipalName(msgspec.Struct, frozen=True, kw_only=True):
    """Another name (``id``) of a principal, and since when it has it."""

    id: str
    principal: str
    since_ms: int


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A principal (``id``) in the group of this name, and since when it is in it."""

    id: str
    name: str
    since_ms: int


_Names: TypeAlias = list[PrincipalName]
_Members: TypeAlias = list[GroupMember]


class Principals:
    """Stores what is known of principals in a database; ``digests`` checks the rows, and reports wrong ones."""

    def __init__(self, database: Database, digests: RowDigests) -> None:
        self._database = database
        self._digests = digests

    async def acts_for(self, principal: str) -> frozenset[str]:
        """Finds the other principals whose things a principal may act on: those of its group.

        Raises StoreUnavailable.
        """
        members = await self._database.read(all_rows(Statement(statements.GROUP_AROUND, (principal,))))
        group = frozenset(each.id for each in await self._trusted(PRINCIPAL_GROUPS, members, GroupMember))
        return group - {principal} if principal in group else NOBODY

    async def stored_name(self, name: str) -> str:
        """Finds the name under which a principal's rows are stored: its first one. Any other name is its own.

        Raises StoreUnavailable; RowForged where the row of another name was forged.
        """
        rows = await self._database.read(all_rows(Statement(statements.NAME_OF, (name,))))
        if not rows:
            return name
        for found in await self._trusted(PRINCIPAL_NAMES, rows, PrincipalName):
            return found.principal
        raise RowForged(f"the row that makes {name!r} another name was not written by this program")

    async def known(self) -> list[str]:
        """Reads the names under which anything is stored, in their order."""
        rows = await self._database.read(all_rows(Statement(owner_statements.KNOWN_PRINCIPALS, (PRINCIPALS_MAX,))))
        return [str(row[0]) for row in rows]

    async def names(self) -> _Names:
        """Reads all other names, oldest first."""
        return await self._all(statements.LIST_NAMES, PRINCIPAL_NAMES, PrincipalName)

    async def groups(self) -> _Members:
        """Reads the members of all groups."""
        return await self._all(statements.LIST_GROUPS, PRINCIPAL_GROUPS, GroupMember)

    async def add_name(self, principal: str, name: str, *, now_ms: int) -> bool:
        """Gives a principal another name; False where anything is stored under it, or it is another name already."""
        columns = (name, principal, now_ms)
        return await self._database.write(_add_name((*columns, self._digests.of(PRINCIPAL_NAMES, columns))))

    async def put_into_group(
        self, name: str, principals: Sequence[str], *, now_ms: int, may_move: bool = False
    ) -> None:
        """Makes principals members of a group, each of this one alone.

        All at once or not at all; may be repeated. Raises Outdated for a principal of another group, unless it may be
        moved.
        """
        # Always in one order: otherwise two commands at once would wait for each other.
        members = [(each, name, now_ms) for each in sorted(set(principals))]
        rows = [(*each, self._digests.of(PRINCIPAL_GROUPS, each), int(may_move)) for each in members]
        await self._database.write(_put_into_group(rows))

    async def take_out_of_group(self, principals: Sequence[str]) -> list[str]:
        """Takes principals out of their groups; gives those that were in one."""
        return await self._database.write(_take_out_of_group(principals))

    async def _all(self, listing: Query, table: Table, kind: type[StructT]) -> list[StructT]:
        rows = await self._database.read(all_rows(Statement(listing, (PRINCIPALS_MAX,))))
        return await self._trusted(table, rows, kind)

    async def _trusted(self, table: Table, rows: list[Row], kind: type[StructT]) -> list[StructT]:
        return [struct_of(row, kind) for row in await self._digests.trusted(table, rows)]


def _add_name(row: tuple[str, str, int, str]) -> Unit[bool]:
    yield Statement(statements.LOCK_NAMES, ())
    known = yield Statement(owner_statements.KNOWN_PRINCIPALS, (PRINCIPALS_MAX,))
    return row[0] not in {name for (name,) in known} and bool((yield Statement(statements.ADD_NAME, row)))


def _put_into_group(members: Sequence[tuple[str, str, int, str, int]]) -> Unit[None]:
    for each in members:
        if not (yield Statement(statements.PUT_INTO_GROUP, each)):
            raise Outdated(f"{each[0]!r} is in another group")


def _take_out_of_group(principals: Sequence[str]) -> Unit[list[str]]:
    taken = []
    for each in sorted(principals):
        if (yield Statement(statements.TAKE_OUT_OF_GROUP, (each,))):
            taken.append(each)  # noqa: PERF401, a comprehension can't yield
    return taken
