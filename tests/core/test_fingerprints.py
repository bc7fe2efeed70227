"""What a fingerprint is, for good: requests that were made before an upgrade are known again after it.

Whoever adds a member to a call meets these tests. The way is in the head of ``core/calls.py``: an optional member, None
where it is absent, that isn't put among ``first_members``. Nothing here is to be changed for it.
"""

import hashlib
import types
import typing
from functools import cache
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.test_calls import charges, effects, texts

from payrelay.core.calls import (
    Call,
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Item,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.payments.idempotency import fingerprint_of

FIRST: Final[dict[type[msgspec.Struct], tuple[str | None, tuple[str, ...]]]] = {
    Charge: (
        "charge",
        (
            *("authorize", "order_id", "items", "currency", "amount_minor", "customer_token"),
            *("custom_1", "custom_2", "notify_url", "item_list"),
        ),
    ),
    Capture: ("capture", ("authorization_token", "amount_minor", "description")),
    Refund: ("refund", ("payment_id", "description", "amount_minor")),
    Void: ("release", ("authorization_token", "description", "amount_minor")),
    RetrySubscription: ("retry", ("subscription_id",)),
    CancelSubscription: ("cancel", ("subscription_id",)),
    Item: (None, ("name", "number", "quantity", "unit_amount_minor")),
}
"""The tag and the members of each call as fingerprints began. It is only ever read."""

accounts = st.sampled_from(["gateway", "payhere", "shop-2"])
kinds = pytest.mark.parametrize("kind", typing.get_args(Effect))


def as_began(value: object) -> object:
    """Gives a value as the first fingerprints hashed it: every first member, nulls included, in their first order."""
    if isinstance(value, tuple):
        return [as_began(part) for part in value]
    if not isinstance(value, msgspec.Struct):
        return value
    tag, names = FIRST[type(value)]
    return ({} if tag is None else {"call": tag}) | {name: as_began(getattr(value, name)) for name in names}


def first_fingerprint(account: str, call: Effect) -> str:
    """Gives a fingerprint as the first version did."""
    return hashlib.sha256(account.encode() + b"\0" + msgspec.json.encode(as_began(call))).hexdigest()


@cache
def grown(kind: type[msgspec.Struct], *names: str) -> type[msgspec.Struct]:
    """Gives a kind of call, or of a part of one, as a later version may have it: with some optional members more."""
    fields = [(name, str | None, None) for name in names or ("added",)]
    return msgspec.defstruct(kind.__name__, fields, bases=(kind,), frozen=True, kw_only=True, tag=_tag_of(kind))


@cache
def sorted_otherwise(kind: type[msgspec.Struct], *, is_reversed: bool) -> type[msgspec.Struct]:
    """Gives a kind of call whose members are declared in another order, with a new one among them."""
    fields = [(name, object, None) for name in sorted((*kind.__struct_fields__, "added"), reverse=is_reversed)]
    first = {"first_members": FIRST[kind][1]}
    return msgspec.defstruct(
        kind.__name__, fields, bases=(Call,), namespace=first, frozen=True, kw_only=True, tag=_tag_of(kind)
    )


def _tag_of(kind: type[msgspec.Struct]) -> str | None:
    tag = kind.__struct_config__.tag
    return tag if isinstance(tag, str) else None


def again_as(kind: type[msgspec.Struct], value: msgspec.Struct, **more: object) -> msgspec.Struct:
    """Makes a value again as another kind, with more members."""
    return kind(**{name: getattr(value, name) for name in value.__struct_fields__}, **more)


def later(call: Effect, *names: str, **more: object) -> Effect:
    """Gives a call as a later version has it, which knows some more members."""
    made = again_as(grown(type(call), *names), call, **more)
    assert isinstance(made, Effect)
    return made


@given(account=accounts, call=effects)
def test_a_fingerprint_is_what_it_was_in_the_first_version(account: str, call: Effect) -> None:
    """One that changes makes every repeat of an earlier request a new one: without a key it charges a second time."""
    assert fingerprint_of(account, call) == first_fingerprint(account, call)


@given(account=accounts, call=effects, name=st.sampled_from(["added", "zzz", "a"]))
def test_a_member_that_is_added_and_absent_changes_no_fingerprint(account: str, call: Effect, name: str) -> None:
    """A client that doesn't know the new member repeats what it asked before the upgrade, and must be known again."""
    assert fingerprint_of(account, later(call, name)) == first_fingerprint(account, call)


@given(account=accounts, call=effects, given_value=texts, other=texts)
def test_a_member_that_is_added_and_given_is_felt(account: str, call: Effect, given_value: str, other: str) -> None:
    """Who asks for something else by the new member must not get the answer to a request without it, or another one."""
    prints = [fingerprint_of(account, later(call, added=value)) for value in (None, given_value, other)]
    assert len(set(prints)) == (2 if given_value == other else 3)


@given(account=accounts, call=charges, value=st.none() | texts)
def test_a_member_of_an_item_is_held_to_the_same(account: str, call: Charge, value: str | None) -> None:
    """The items of a bill are hashed with their charge: one more member of theirs is as dangerous as one of its own."""
    kind = grown(Item)
    lines = None if call.item_list is None else tuple(again_as(kind, entry, added=value) for entry in call.item_list)
    is_felt = value is not None and bool(lines)
    asked = msgspec.structs.replace(call, item_list=lines)
    assert (fingerprint_of(account, asked) != first_fingerprint(account, call)) is is_felt


@given(account=accounts, call=effects, is_reversed=st.booleans())
def test_the_order_in_which_members_are_declared_is_nothing_to_a_fingerprint(
    account: str, call: Effect, *, is_reversed: bool
) -> None:
    """Whoever sorts the members of a call, or writes a new one between two, changes nothing that is stored."""
    arguments: dict[str, Any] = {"call": again_as(sorted_otherwise(type(call), is_reversed=is_reversed), call)}
    assert fingerprint_of(account, **arguments) == first_fingerprint(account, call)


@given(call=effects)
def test_members_that_are_added_are_hashed_in_the_order_of_their_names(call: Effect) -> None:
    """Two versions that declare them in another order find each other's claims."""
    one = later(call, "alpha", "beta", alpha="1", beta="2")
    other = later(call, "beta", "alpha", alpha="1", beta="2")
    assert fingerprint_of("gateway", one) == fingerprint_of("gateway", other)


@pytest.mark.parametrize("kind", FIRST)
def test_the_first_members_are_those_of_the_first_version(kind: type[Charge]) -> None:
    """A member that is put among them is hashed where it is absent too, and no earlier request is known any more."""
    tag, names = FIRST[kind]
    assert kind.first_members == names, f"{kind.__name__}.first_members never changes: see the head of core/calls.py"
    assert kind.__struct_config__.tag == tag, f"the tag of {kind.__name__} is stored, and hashed"


def test_every_effect_has_been_looked_at() -> None:
    """A new effect has no first members: it is hashed by what is given, and may go without a line in FIRST."""
    added = set(typing.get_args(Effect)) - set(FIRST)
    assert all(kind.first_members == () for kind in added), "a call that came later has no first_members"
    assert set(FIRST) - {Item} <= set(typing.get_args(Effect)), "a stored call can't be read back any more"


@pytest.mark.parametrize("kind", [*typing.get_args(Effect), Item])
def test_a_member_that_is_added_may_be_absent_and_is_none_then(kind: type[Charge]) -> None:
    """Stored calls don't have it, clients don't know it, and a fingerprint leaves out None and nothing else."""
    added = [field for field in msgspec.structs.fields(kind) if field.name not in kind.first_members]
    is_new = kind not in FIRST
    wrong = [field.name for field in added if field.default is not None]
    assert is_new or not wrong, f"{kind.__name__}: {wrong} must be optional, and None where absent"


@kinds
def test_a_call_is_made_of_what_a_fingerprint_can_hash(kind: type[Charge]) -> None:
    """A mapping would be hashed in any order, and a part that doesn't follow the rules with all its nulls."""
    leaves = {leaf for hint in typing.get_type_hints(kind).values() for leaf in leaves_of(hint)}
    plain: set[object] = {str, int, bool, type(None), Item}
    assert leaves <= plain, f"{kind.__name__} is made of {leaves - plain}"


def leaves_of(hint: object) -> set[object]:
    """Gives the types that a hint is made of, but for unions and tuples of them."""
    if typing.get_origin(hint) in {typing.Union, types.UnionType, tuple}:
        return {leaf for part in typing.get_args(hint) if part is not Ellipsis for leaf in leaves_of(part)}
    return set() if typing.get_origin(hint) is typing.ClassVar else {hint}


@given(call=effects)
def test_a_stored_call_is_read_by_a_version_that_has_a_member_more(call: Effect) -> None:
    """What was lost before an upgrade is resolved after it, from the call as it was stored then."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(call), type=grown(type(call))) == later(call)


@given(call=effects)
def test_a_stored_call_of_a_later_version_is_read_where_what_was_added_is_absent(call: Effect) -> None:
    """Old and new processes run side by side: what asks for nothing new can be resolved by either."""
    stored = msgspec.msgpack.encode(later(call))
    assert msgspec.msgpack.decode(stored, type=Effect) == call


@given(call=effects)
def test_a_stored_call_of_a_later_version_is_not_read_in_part(call: Effect) -> None:
    """An old process that sent a call once more without its new member would ask for something else.

    It leaves the operation to a process that knows the member.
    """
    stored = msgspec.msgpack.encode(later(call, added="given"))
    with pytest.raises(msgspec.ValidationError, match="unknown field `added`"):
        msgspec.msgpack.decode(stored, type=Effect)
