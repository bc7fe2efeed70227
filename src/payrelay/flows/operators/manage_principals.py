"""Manages principals for operators: which act together, which names they have, and which pairs nobody decided about."""

import shlex
from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.errors import Code, Refusal
from payrelay.store.access.principals import GrandfatheredPair, GrandfatherReason, Principals

NAME_LENGTH_MAX: Final = 100
"""As of a key's name; people read both in a list."""


class PrincipalSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A principal as an operator sees it.

    Attributes:
        name: its newest name.
        stored_as: the name under which its rows are stored, and which answers and events show.
        group: the name of its group; None where it is in none.
        may_still_act_for: the principals on whose things it may act until an operator decides.
    """

    name: str
    stored_as: str
    group: str | None
    may_still_act_for: list[str]


async def list_principals(principals: Principals) -> list[PrincipalSummary]:
    """Returns all principals that have a key or made anything, by their stored names. Raises StoreError."""
    newest = {each.principal: each.id for each in await principals.names()}
    groups = {each.id: each.name for each in await principals.groups()}
    pairs = await principals.grandfathered()
    return [
        PrincipalSummary(
            name=newest.get(stored, stored),
            stored_as=stored,
            group=groups.get(stored),
            may_still_act_for=[pair.owner for pair in pairs if pair.principal == stored],
        )
        for stored in await principals.known()
    ]


async def group_principals(principals: Principals, clock: Clock, name: str, members: Sequence[str]) -> list[str]:
    """Puts principals into one group, and ends the grandfathered pairs among them; returns all members of the group.

    A principal that was in another group leaves it. May be repeated. Raises StoreError, and Refusal: not_found for a
    principal that nothing is stored under, invalid_request for a name that can't be shown in a list.
    """
    _require_name(name)
    await principals.put_into_group(name, await _stored(principals, members), now_ms=clock.now_ms())
    return [each.id for each in await principals.groups() if each.name == name]


async def ungroup_principals(principals: Principals, members: Sequence[str]) -> list[str]:
    """Takes principals out of their groups; returns those that were in one. Raises as ``group_principals`` does."""
    return await principals.take_out_of_group(await _stored(principals, members))


async def separate_principals(principals: Principals, members: Sequence[str]) -> int:
    """Ends the grandfathered pairs among principals; returns their number. Raises as ``group_principals`` does.

    From then on each acts on its own things alone, unless a group has both.
    """
    return await principals.separate(await _stored(principals, members))


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
    is_free = new_name not in await principals.known()
    if not is_free or not await principals.add_name(stored, new_name, now_ms=clock.now_ms()):
        raise Refusal(Code.CONFLICT, f"{new_name!r} is a principal already; put both into a group")
    return stored


def pair_in_words(pair: GrandfatheredPair) -> str:
    """Tells what a grandfathered pair means, with the two commands that decide about it."""
    if pair.reason is GrandfatherReason.ACTED:
        times = "once" if pair.actions == 1 else f"{pair.actions} times"
        why = f"{pair.principal} acted on payments, plans or orders of {pair.owner} before the upgrade ({times})"
    else:
        why = f"{pair.principal} has a key that could read or change what {pair.owner} made, and has made nothing yet"
    return (
        f"{why}, and still may. To let them act as one: {command_that_groups(pair)}."
        f" To keep them apart: {command_that_separates(pair)}"
    )


def command_that_groups(pair: GrandfatheredPair) -> str:
    """Gives the command that makes the two principals of a pair one owner."""
    name = f"{pair.owner}-{pair.principal}"[:NAME_LENGTH_MAX]
    return shlex.join(["payrelay", "principals", "group", name, pair.owner, pair.principal])


def command_that_separates(pair: GrandfatheredPair) -> str:
    """Gives the command that keeps the two principals of a pair apart."""
    return shlex.join(["payrelay", "principals", "separate", pair.owner, pair.principal])


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
