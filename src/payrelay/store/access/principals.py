"""Principals in the store: their other names, their groups, and their grandfathered pairs.

Each row lets somebody act on what isn't theirs. It counts only with its keyed digest, so that a row that was written
without the store's secret grants nothing.
"""

from collections.abc import Sequence
from enum import StrEnum
from itertools import permutations
from typing import Final, TypeAlias, TypeVar

import msgspec

from payrelay.core.access.ownership import NOBODY, ActsFor
from payrelay.core.keyed_digest import DigestKey
from payrelay.errors import StoreError
from payrelay.store.engine.database import Database, Statement, Unit, all_rows, first_row
from payrelay.store.engine.queries import Query
from payrelay.store.engine.rows import struct_of
from payrelay.store.statements.access import owners as owner_statements
from payrelay.store.statements.access import principals as statements

PRINCIPALS_MAX: Final = 10_000
"""The most that a list gives; a merchant has a handful."""


class GrandfatherReason(StrEnum):
    """Why a pair is grandfathered."""

    ACTED = "acted"
    """The principal acted on payments, authorizations, plans or orders of the owner."""
    UNSEEN = "unseen"
    """The principal had a key that could, and had made nothing: nobody can tell what it read."""


class PrincipalName(msgspec.Struct, frozen=True, kw_only=True):
    """Another name of a principal, and since when it has it."""

    name: str
    principal: str
    since_ms: int
    digest: str = ""


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A principal in a group, and since when it is in it."""

    principal: str
    name: str
    since_ms: int
    digest: str = ""


class GrandfatheredPair(msgspec.Struct, frozen=True, kw_only=True):
    """A principal that may still act on the things of an owner, because it could before owners were asked for.

    ``actions`` and ``last_at_ms`` are how often it did, and when for the last time.
    """

    principal: str
    owner: str
    reason: GrandfatherReason
    actions: int
    last_at_ms: int | None
    digest: str = ""


_RowT = TypeVar("_RowT", PrincipalName, GroupMember, GrandfatheredPair)
_Names: TypeAlias = list[PrincipalName]
_Members: TypeAlias = list[GroupMember]
_Pairs: TypeAlias = list[GrandfatheredPair]


class PrincipalDigests:
    """Signs the rows that let a principal act on what isn't its own, and finds those that were signed."""

    def __init__(self, secret: bytes) -> None:
        self._keys = {
            PrincipalName: DigestKey(secret, "principal name"),
            GroupMember: DigestKey(secret, "principal group"),
            GrandfatheredPair: DigestKey(secret, "grandfathered pair"),
        }

    def signed(self, row: _RowT) -> _RowT:
        """Gives a row with its digest."""
        *members, _ = msgspec.structs.astuple(row)
        return msgspec.structs.replace(row, digest=self._keys[type(row)].digest(*members))

    def proved(self, rows: Sequence[_RowT]) -> list[_RowT]:
        """Gives those of the rows that were written with the secret, as they are."""
        return [row for row in rows if self._is_proved(row)]

    def unproved(self, rows: Sequence[_RowT]) -> list[_RowT]:
        """Gives those of the rows that weren't."""
        return [row for row in rows if not self._is_proved(row)]

    def _is_proved(self, row: _RowT) -> bool:
        *members, digest = msgspec.structs.astuple(row)
        return self._keys[type(row)].fits(digest, *members)


class Principals:
    """Stores what is known of principals in a database; ``secret`` is that of all keyed digests."""

    def __init__(self, database: Database, secret: bytes) -> None:
        self._database = database
        self._digests = PrincipalDigests(secret)

    async def acts_for(self, principal: str) -> ActsFor:
        """Finds the other principals whose things a principal may act on. Raises StoreUnavailable."""
        members, pairs = await self._database.read(_acts_for(principal))
        group = frozenset(each.principal for each in self._digests.proved(members))
        return ActsFor(
            group=group - {principal} if principal in group else NOBODY,
            grandfathered=frozenset(each.owner for each in self._digests.proved(pairs)),
        )

    async def stored_name(self, name: str) -> str:
        """Finds the name under which a principal's rows are stored: its first one. Any other name is its own.

        Raises StoreUnavailable; StoreError where the row of another name was forged.
        """
        row = await self._database.read(first_row(Statement(statements.NAME_OF, (name,))))
        if row is None:
            return name
        found = struct_of(row, PrincipalName)
        if not self._digests.proved([found]):
            raise StoreError(f"the row that makes {name!r} another name was not written by this program")
        return found.principal

    async def known(self) -> list[str]:
        """Reads the names under which anything is stored, in their order."""
        rows = await self._database.read(all_rows(Statement(owner_statements.KNOWN_PRINCIPALS, (PRINCIPALS_MAX,))))
        return [str(row[0]) for row in rows]

    async def names(self) -> _Names:
        """Reads all other names, oldest first."""
        return self._digests.proved(await self._read(statements.LIST_NAMES, PrincipalName))

    async def groups(self) -> _Members:
        """Reads the members of all groups."""
        return self._digests.proved(await self._read(statements.LIST_GROUPS, GroupMember))

    async def grandfathered(self) -> _Pairs:
        """Reads the pairs about which no operator has decided."""
        return self._digests.proved(await self._read(statements.LIST_GRANDFATHERED, GrandfatheredPair))

    async def forged(self) -> list[str]:
        """Names the rows that were not written with the secret, by table and key. Raises StoreUnavailable."""
        return [
            *await self._forged(statements.LIST_NAMES, PrincipalName, "principal_names"),
            *await self._forged(statements.LIST_GROUPS, GroupMember, "principal_groups"),
            *await self._forged(statements.LIST_GRANDFATHERED, GrandfatheredPair, "grandfathered"),
        ]

    async def add_name(self, principal: str, name: str, *, now_ms: int) -> bool:
        """Gives a principal another name; False where the name is another name already."""
        row = self._digests.signed(PrincipalName(name=name, principal=principal, since_ms=now_ms))
        statement = Statement(statements.ADD_NAME, msgspec.structs.astuple(row), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def put_into_group(self, name: str, principals: Sequence[str], *, now_ms: int) -> None:
        """Makes principals members of a group, each of this one alone; ends the grandfathered pairs among them.

        All at once or not at all; may be repeated.
        """
        members = [self._digests.signed(GroupMember(principal=each, name=name, since_ms=now_ms)) for each in principals]
        await self._database.write(_put_into_group(members))

    async def take_out_of_group(self, principals: Sequence[str]) -> list[str]:
        """Takes principals out of their groups; gives those that were in one."""
        return await self._database.write(_take_out_of_group(principals))

    async def separate(self, principals: Sequence[str]) -> int:
        """Ends the grandfathered pairs among these principals; gives their number. May be repeated."""
        return await self._database.write(_end_pairs(principals))

    async def _read(self, listing: Query, kind: type[_RowT]) -> list[_RowT]:
        rows = await self._database.read(all_rows(Statement(listing, (PRINCIPALS_MAX,))))
        return [struct_of(row, kind) for row in rows]

    async def _forged(self, listing: Query, kind: type[_RowT], table: str) -> list[str]:
        unproved = self._digests.unproved(await self._read(listing, kind))
        return [f"{table}/{msgspec.structs.astuple(row)[0]}" for row in unproved]


async def sign_grandfathered(database: Database, secret: bytes) -> None:
    """Signs the pairs that the migration found, once; may be repeated. Raises StoreUnavailable."""
    rows = await database.read(all_rows(Statement(statements.LIST_GRANDFATHERED, (PRINCIPALS_MAX,))))
    pairs = [struct_of(row, GrandfatheredPair) for row in rows]
    await database.write(_sign([PrincipalDigests(secret).signed(each) for each in pairs if not each.digest]))


def _sign(pairs: Sequence[GrandfatheredPair]) -> Unit[None]:
    for each in pairs:
        yield Statement(statements.SIGN_GRANDFATHERED, (each.principal, each.owner, each.digest))


def _acts_for(principal: str) -> Unit[tuple[_Members, _Pairs]]:
    members = yield Statement(statements.GROUP_AROUND, (principal,))
    pairs = yield Statement(statements.GRANDFATHERED_FOR, (principal,))
    return [struct_of(row, GroupMember) for row in members], [struct_of(row, GrandfatheredPair) for row in pairs]


def _put_into_group(members: Sequence[GroupMember]) -> Unit[None]:
    # Always in one order: otherwise two commands at once would wait for each other.
    for each in sorted(members, key=lambda member: member.principal):
        yield Statement(statements.PUT_INTO_GROUP, msgspec.structs.astuple(each))
    yield from _end_pairs([each.principal for each in members])


def _take_out_of_group(principals: Sequence[str]) -> Unit[list[str]]:
    taken = []
    for each in sorted(principals):
        if (yield Statement(statements.TAKE_OUT_OF_GROUP, (each,))):
            taken.append(each)  # noqa: PERF401, a comprehension can't yield
    return taken


def _end_pairs(principals: Sequence[str]) -> Unit[int]:
    ended = 0
    for principal, owner in permutations(sorted(set(principals)), 2):
        ended += len((yield Statement(statements.END_GRANDFATHERED, (principal, owner))))
    return ended
