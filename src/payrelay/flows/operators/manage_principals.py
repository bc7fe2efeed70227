"""Manages principals for operators: which act together, which names they have, and which pairs nobody decided about."""

import shlex
from collections.abc import Mapping, Sequence
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
    groups = await groups_of(principals)
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


async def group_principals(
    principals: Principals, clock: Clock, name: str, members: Sequence[str], *, may_move: bool = False
) -> list[str]:
    """Puts principals into one group, and ends the grandfathered pairs among them; returns all members of the group.

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
    if not await principals.add_name(stored, new_name, now_ms=clock.now_ms()):
        raise Refusal(Code.CONFLICT, f"{new_name!r} is a principal already; put both into a group")
    return stored


async def undecided(principals: Principals) -> list[str]:
    """Returns a text for each grandfathered pair, with the commands that decide about it. Raises StoreError."""
    groups = await groups_of(principals)
    return [pair_in_words(pair, groups) for pair in await principals.grandfathered()]


def pair_in_words(pair: GrandfatheredPair, groups: Mapping[str, str]) -> str:
    """Tells what a grandfathered pair means, with the two commands that decide about it; ``groups`` by principal."""
    if pair.reason is GrandfatherReason.ACTED:
        times = "once" if pair.actions == 1 else f"{pair.actions} times"
        why = f"{pair.principal} acted on payments, plans or orders of {pair.owner} before the upgrade ({times})"
    else:
        why = f"{pair.principal} has a key that could read or change what {pair.owner} made, and has made nothing yet"
    return (
        f"{why}, and still may. To let them act as one: {command_that_groups(pair, groups)}{_beside(pair, groups)}."
        f" To keep them apart: {command_that_separates(pair)}"
    )


def command_that_groups(pair: GrandfatheredPair, groups: Mapping[str, str]) -> str:
    """Gives the command that makes the two principals of a pair one owner, in the group that one of them is in."""
    name = _group_for(pair, groups)
    move = ["--move"] if any(groups.get(each, name) != name for each in (pair.owner, pair.principal)) else []
    return shlex.join(["payrelay", "principals", "group", *move, name, pair.owner, pair.principal])


def _group_for(pair: GrandfatheredPair, groups: Mapping[str, str]) -> str:
    new = f"{pair.owner}-{pair.principal}"[:NAME_LENGTH_MAX]
    return groups.get(pair.owner) or groups.get(pair.principal) or new


def _beside(pair: GrandfatheredPair, groups: Mapping[str, str]) -> str:
    """Names those who would act as one with them too, and those who would no more."""
    name, both = _group_for(pair, groups), {pair.owner, pair.principal}
    others = sorted(each for each, group in groups.items() if group == name and each not in both)
    left = sorted(
        each
        for each, group in groups.items()
        if each not in both and group != name and group in {groups.get(pair.owner), groups.get(pair.principal)}
    )
    told = [f"together with {', '.join(others)}"] if others else []
    told += [f"and no more with {', '.join(left)}"] if left else []
    return f" ({' '.join(told)})" if told else ""


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
