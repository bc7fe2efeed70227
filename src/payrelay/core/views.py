"""Makes structs of what other values have under the same names, so that such members are not listed again."""

from typing import TypeVar

import msgspec

from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json

StructT = TypeVar("StructT", bound=msgspec.Struct)


def with_members_of(source: object, kind: type[StructT], **others: object) -> StructT:
    """Makes a struct with the members that ``source`` has under the same names, properties among them.

    ``others`` are the members that it lacks, or has otherwise. The types of copied members are not checked here.
    Raises TypeError where a member without a default is in neither.
    """
    names = [name for name in kind.__struct_fields__ if name not in others and hasattr(source, name)]
    return kind(**{name: getattr(source, name) for name in names}, **others)


def view_of(source: object, kind: type[StructT], **others: object) -> StructT:
    """Makes a struct as ``with_members_of`` does, with times and amounts as clients see them.

    A member that the source has in milliseconds (``…_ms``) is a text of RFC 3339, or None. One that it has in
    hundredths (``…_minor``) is a JSON number, or null.
    """
    shown = dict(others)
    for name in kind.__struct_fields__:
        if name not in others and hasattr(source, f"{name}_ms"):
            shown[name] = moment_or_none(getattr(source, f"{name}_ms"))
        elif name not in others and hasattr(source, f"{name}_minor"):
            shown[name] = amount_json(getattr(source, f"{name}_minor"))
    return with_members_of(source, kind, **shown)


def moment_or_none(at_ms: int | None) -> str | None:
    """Gives a time as clients see it, in RFC 3339; None stays None."""
    return None if at_ms is None else rfc3339(at_ms)
