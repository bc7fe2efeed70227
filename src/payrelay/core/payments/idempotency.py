"""Repeats: how Payrelay recognises a request that was made before, and how it answers the repeat.

Rules:

1. A claim is unique per principal. With an Idempotency-Key the claim is the key; without one it is the fingerprint,
   for as long as the setting PAYRELAY_REPEAT_WINDOW says.
2. The fingerprint covers the account and the parsed call, whose tag stands for method and path. So white space, the
   order of members and 1.0 against 1.00 make no difference, and a default equals its absence. A later version must not
   change the fingerprint, or a repeat of an earlier request would charge again: see ``core/calls.py``.
3. A key with another fingerprint is refused, whatever state the first request is in.
"""

import hashlib
import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from payrelay.core.calls import Call, Effect, Item
from payrelay.core.payments.operation import FROZEN, Operation, State, claim_of_key
from payrelay.errors import Code, Refusal

KEY_LENGTH_MAX: Final = 255
_KINDS_MAX: Final = 64
"""More than there are kinds of calls and of their parts."""
_is_visible: Final = re.compile("[!-~]*").fullmatch

_encode = msgspec.json.Encoder().encode


class Repeat(StrEnum):
    """How a request is answered whose claim an earlier request holds."""

    REPLAY = "replay"
    """The final answer again."""
    STATE = "state"
    """202: the outcome of the earlier request isn't known yet."""
    IN_PROGRESS = "in_progress"
    """409: the earlier request is being carried out now."""


def parse_key(values: list[str]) -> str | None:
    """Reads the Idempotency-Key header, bare or as a quoted string of the IETF draft; None where it wasn't sent.

    ``values`` are all headers of that name. Raises Refusal (malformed_request) for more than one, for one that is not 1
    to 255 visible ASCII characters, and for one that is badly quoted.
    """
    if not values:
        return None
    if len(values) > 1:
        raise Refusal(Code.MALFORMED_REQUEST, "Idempotency-Key was sent more than once")
    text = values[0].strip(" \t")
    key = _unquoted(text) if text.startswith('"') else text
    if not 1 <= len(key) <= KEY_LENGTH_MAX:
        raise Refusal(Code.MALFORMED_REQUEST, f"Idempotency-Key must have 1 to {KEY_LENGTH_MAX} characters")
    if not _is_visible(key):
        raise Refusal(Code.MALFORMED_REQUEST, "Idempotency-Key must be visible ASCII characters")
    return key


def _unquoted(text: str) -> str:
    """Reads a quoted string of a structured field (RFC 8941, 3.3.3); a backslash escapes a quote or a backslash."""
    characters: list[str] = []
    rest = iter(text[1:])
    for character in rest:
        if character == '"':
            if next(rest, None) is not None:
                break
            return "".join(characters)
        if character == "\\":
            escaped = next(rest, "")
            if escaped not in {'"', "\\"}:
                break
            characters.append(escaped)
        else:
            characters.append(character)
    raise Refusal(Code.MALFORMED_REQUEST, "Idempotency-Key is not a well-formed quoted string")


def fingerprint_of(account: str, call: Effect) -> str:
    """Gives 64 hex digits that are equal for equal requests to the same account."""
    return hashlib.sha256(account.encode() + b"\0" + _encode(_hashed(call))).hexdigest()


def _hashed(value: Call | Item) -> msgspec.Struct:
    """Gives what is hashed of a call, or of a part of one: a value with its members in the order of the fingerprint.

    A member that was added later and is absent leaves the fingerprint as it was before there was such a member.
    """
    kind = type(value)
    hashed = _hashed_kind(kind)
    if hashed.added:
        hashed = _hashed_kind(kind, *[name for name in hashed.added if getattr(value, name) is not None])
    members = hashed.pick(value)
    if tuple in map(type, members):
        members = tuple([_hashed(part) for part in each] if isinstance(each, tuple) else each for each in members)
    return hashed.make(*members)


class _HashedKind(NamedTuple):
    """How a kind of call, or of a part of one, is hashed.

    Attributes:
        make: makes the value that is written, of its members. msgspec writes a struct many times as quickly as it is
            written name by name.
        pick: gives these members of a call.
        added: the members that were added later, in the order in which those that are given are hashed.
    """

    make: Callable[..., msgspec.Struct]
    pick: Callable[[object], tuple[object, ...]]
    added: tuple[str, ...]


@lru_cache(maxsize=_KINDS_MAX)
def _hashed_kind(kind: type[Call | Item], *given: str) -> _HashedKind:
    """Gives how a kind is hashed where these members, which were added later, are given."""
    config, names = kind.__struct_config__, (*kind.first_members, *given)
    fields = [(name, object) for name in names]
    make = msgspec.defstruct(kind.__name__, fields, tag_field=config.tag_field, tag=config.tag)
    added = tuple(sorted(name for name in kind.__struct_fields__ if name not in kind.first_members))
    return _HashedKind(make, _picking(names), added)


def _picking(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def claim_of(key: str | None, request_fingerprint: str, *, is_unkeyed_claimed: bool) -> str | None:
    """Gives the claim by which a repeat finds this request; None where there is no key and the repeat window is 0."""
    if key is not None:
        return claim_of_key(key)
    return f"fingerprint/{request_fingerprint}" if is_unkeyed_claimed else None


def decide_repeat(earlier: Operation, request_fingerprint: str) -> Repeat:
    """Decides how a request is answered whose claim an earlier operation holds.

    Raises Refusal (idempotency_mismatch) where the fingerprints of the two requests differ.
    """
    if earlier.fingerprint != request_fingerprint:
        raise Refusal(Code.IDEMPOTENCY_MISMATCH, "this Idempotency-Key was used with another request")
    if earlier.state in FROZEN:
        return Repeat.REPLAY
    return Repeat.IN_PROGRESS if earlier.state in {State.ACCEPTED, State.SENDING} else Repeat.STATE
