"""Manages principals for operators: which act together, and which names they have."""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.errors import Code, Refusal
from payrelay.store.access.principals import Principals

NAME_LENGTH_MAX: Final = 100
"""As of a key's name; people read both in a list."""


class PrincipalSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A principal as an operator sees it.

    Attributes:
        name: its newest name.
        stored_as: the name under which its rows are stored, and which answers and events show.
        group: the name of its group; None where it is in none.
    """

    name: str
    stored_as: str
    group: str | None


async def list_principals(principals: Principals) -> list[PrincipalSummary]:
    """Returns all principals that have a key or made anything, by their stored names. Raises StoreError."""
    newest = {each.principal: each.id for each in await principals.names()}
    groups = await groups_of(principals)
    return [
        PrincipalSummary(
            name=newest.get(stored, stored),
            stored_as=stored,
            group=groups.get(stored),
        )
        for stored in await principals.known()
    ]


async def group_principals(
    principals: Principals, clock: Clock, name: str, members: Sequence[str], *, may_move: bool = False
) -> list[str]:
    """Puts principals into one group; returns all members of the group.

    May be repeated. Raises StoreError, and Refusal: not_found for a principal that nothing is stored under,
    invalid_request for a name that can't be shown in a list, conflict for a principal of another group. With
    ``may_move`` such a principal leaves that group, whose other members act for it no more.
    """
    _require_name(name)
    stored = await _stored(principals, members)
    groups = await groups_of(principals)
    for each in stored:
        if groups.get(each, name) != name and not may_move:
            raise Refusal(
                Code.CONFLICT,
                f"{each!r} is in the group {groups[each]!r}: add the others to that group, or move it with --move",
            )
    await principals.put_into_group(name, stored, now_ms=clock.now_ms(), may_move=may_move)
    return [each.id for each in await principals.groups() if each.name == name]


async def groups_of(principals: Principals) -> dict[str, str]:
    """Returns the name of each principal's group, for those that are in one. Raises StoreError."""
    return {each.id: each.name for each in await principals.groups()}


async def ungroup_principals(principals: Principals, members: Sequence[str]) -> list[str]:
    """Takes principals out of their groups; returns those that were in one. Raises as ``group_principals`` does."""
    return await principals.take_out_of_group(await _stored(principals, members))


async def rename_principal(principals: Principals, clock: Clock, name: str, new_name: str) -> str:
    """Gives a principal another name, and returns the name under which its rows are stored.

    Its rows, answers and events keep the stored name, and so do its Idempotency-Keys. Keys that are made for the new
    name act as the principal. Raises StoreError, and Refusal: not_found for an unknown principal, conflict for a new
    name that another principal has, invalid_request for a name that can't be shown in a list.
    """
    _require_name(new_name)
    [stored] = await _stored(principals, [name])
    if await principals.stored_name(new_name) == stored:
        return stored
    if not await principals.add_name(stored, new_name, now_ms=clock.now_ms()):
        raise Refusal(Code.CONFLICT, f"{new_name!r} is a principal already; put both into a group")
    return stored


async def _stored(principals: Principals, names: Sequence[str]) -> list[str]:
    known = frozenset(await principals.known())
    stored = [await principals.stored_name(name) for name in names]
    for name, each in zip(names, stored, strict=True):
        if each not in known:
            raise Refusal(Code.NOT_FOUND, f"there is no principal {name!r}; `payrelay principals list` shows all")
    return stored


def _require_name(name: str) -> None:
    if not name.strip() or not name.isprintable() or len(name) > NAME_LENGTH_MAX:
        raise Refusal(Code.INVALID_REQUEST, f"a name has 1 to {NAME_LENGTH_MAX} printable characters")
