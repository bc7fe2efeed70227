"""Principals in the store: their other names, and their groups.

Each row lets somebody act on what isn't theirs. It counts only with its keyed digest, as all rows of
``store.digests.rows`` do.
"""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.access.ownership import NOBODY
from payrelay.errors import Outdated, RowForged
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.rows import StructT
from payrelay.store.engine.tables import StructTable, columns_for
from payrelay.store.statements.access import owners as owner_statements

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
        members = await self._database.read(all_rows(Statement(GROUP_AROUND, (principal,))))
        group = frozenset(each.id for each in await self._digests.values(PRINCIPAL_GROUPS, members))
        return group - {principal} if principal in group else NOBODY

    async def stored_name(self, name: str) -> str:
        """Finds the name under which a principal's rows are stored: its first one. Any other name is its own.

        Raises StoreUnavailable; RowForged where the row of another name was forged.
        """
        rows = await self._database.read(all_rows(Statement(NAME_OF, (name,))))
        if not rows:
            return name
        for found in await self._digests.values(PRINCIPAL_NAMES, rows):
            return found.principal
        raise RowForged(f"the row that makes {name!r} another name was not written by this program")

    async def known(self) -> list[str]:
        """Reads the names under which anything is stored, in their order."""
        rows = await self._database.read(all_rows(Statement(owner_statements.KNOWN_PRINCIPALS, (PRINCIPALS_MAX,))))
        return [str(row[0]) for row in rows]

    async def names(self) -> _Names:
        """Reads all other names, oldest first."""
        return await self._all(LIST_NAMES, PRINCIPAL_NAMES)

    async def groups(self) -> _Members:
        """Reads the members of all groups."""
        return await self._all(LIST_GROUPS, PRINCIPAL_GROUPS)

    async def add_name(self, principal: str, name: str, *, now_ms: int) -> bool:
        """Gives a principal another name; False where anything is stored under it, or it is another name already."""
        return await self._database.write(
            _add_name(name, self._digests.key.digested(PRINCIPAL_NAMES, (name, principal, now_ms)))
        )

    async def put_into_group(
        self, name: str, principals: Sequence[str], *, now_ms: int, may_move: bool = False
    ) -> None:
        """Makes principals members of a group, each of this one alone.

        All at once or not at all; may be repeated. Raises Outdated for a principal of another group, unless it may be
        moved.
        """
        # Always in one order: otherwise two commands at once would wait for each other.
        members = [(each, name, now_ms) for each in sorted(set(principals))]
        rows = [(*self._digests.key.digested(PRINCIPAL_GROUPS, each), int(may_move)) for each in members]
        await self._database.write(_put_into_group(rows))

    async def take_out_of_group(self, principals: Sequence[str]) -> list[str]:
        """Takes principals out of their groups; gives those that were in one."""
        return await self._database.write(_take_out_of_group(principals))

    async def _all(self, listing: Query, table: StructTable[StructT]) -> list[StructT]:
        rows = await self._database.read(all_rows(Statement(listing, (PRINCIPALS_MAX,))))
        return await self._digests.values(table, rows)


def _add_name(name: str, row: Row) -> Unit[bool]:
    yield Statement(LOCK_NAMES, ())
    known = yield Statement(owner_statements.KNOWN_PRINCIPALS, (PRINCIPALS_MAX,))
    return name not in {each for (each,) in known} and bool((yield Statement(ADD_NAME, tuple(row))))


def _put_into_group(members: Sequence[tuple[Value, ...]]) -> Unit[None]:
    for each in members:
        if not (yield Statement(PUT_INTO_GROUP, each)):
            raise Outdated(f"{each[0]!r} is in another group")


def _take_out_of_group(principals: Sequence[str]) -> Unit[list[str]]:
    taken = []
    for each in sorted(principals):
        if (yield Statement(TAKE_OUT_OF_GROUP, (each,))):
            taken.append(each)  # noqa: PERF401, a comprehension can't yield
    return taken


PRINCIPAL_NAMES: Final = StructTable(name="principal_names", kind=PrincipalName, columns=columns_for(PrincipalName))
PRINCIPAL_GROUPS: Final = StructTable(name="principal_groups", kind=GroupMember, columns=columns_for(GroupMember))

NAME_OF: Final = query(f"{PRINCIPAL_NAMES.select} WHERE id = $1")
"""Reads whose other name this is."""

LIST_NAMES: Final = query(f"{PRINCIPAL_NAMES.select} ORDER BY since_ms, id LIMIT $1")
"""Reads the other names, oldest first."""

LOCK_NAMES: Final = query("SELECT pg_advisory_xact_lock(hashtextextended('principals', 0))", sqlite=("SELECT 1",))
"""Lets one transaction at a time give a name, to a key or to a principal, until it ends: the one is a row of another
table than the other. SQLite has one writer anyway."""

ADD_NAME: Final = query(
    f"""
    {PRINCIPAL_NAMES.insert()}
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Gives a principal another name; gives no row where the name is taken."""

GROUP_AROUND: Final = query(
    f"""
    {PRINCIPAL_GROUPS.select}
    WHERE name = (SELECT own.name FROM principal_groups AS own WHERE own.id = $1)""",
)
"""Reads the members of a principal's group, itself included."""

LIST_GROUPS: Final = query(f"{PRINCIPAL_GROUPS.select} ORDER BY name, id LIMIT $1")
"""Reads all members of groups."""

PUT_INTO_GROUP: Final = query(
    f"""
    {PRINCIPAL_GROUPS.insert()}
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, since_ms = excluded.since_ms, row_digest = excluded.row_digest
    WHERE principal_groups.name = excluded.name OR $5::bigint = 1
    RETURNING id""",
)
"""Puts a principal into a group. Where $5 is 1, takes it out of any other; else gives no row for one of another group.
"""

TAKE_OUT_OF_GROUP: Final = query("DELETE FROM principal_groups WHERE id = $1 RETURNING id")
"""Takes a principal out of its group; gives no row where it is in none."""
