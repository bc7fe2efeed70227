"""Every statement that the program declares, by the name under which it is declared."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Final

from payrelay.store import statements
from payrelay.store.engine.queries import Query

_HELD_IN: Final = (tuple, list)


def declared() -> dict[str, Query]:
    """Finds the queries in all modules of ``statements``, also those in tuples and dictionaries."""
    found: dict[str, Query] = {}
    for module in pkgutil.walk_packages(statements.__path__, f"{statements.__name__}."):
        names = vars(importlib.import_module(module.name))
        short = module.name.removeprefix(f"{statements.__name__}.")
        for name, value in names.items():
            if name.isupper():
                found |= {f"{short}.{path}": each for path, each in _queries(name, value)}
    return _each_once(found)


def _queries(path: str, value: object) -> Iterator[tuple[str, Query]]:
    if isinstance(value, Query):
        yield path, value
    elif isinstance(value, dict):
        for number, each in enumerate(value.values()):
            yield from _queries(f"{path}[{number}]", each)
    elif isinstance(value, _HELD_IN):
        fields = getattr(value, "_fields", range(len(value)))
        for field, each in zip(fields, value, strict=True):
            yield from _queries(f"{path}.{field}", each)


def _each_once(found: dict[str, Query]) -> dict[str, Query]:
    seen: dict[Query, str] = {}
    for name, each in found.items():
        seen.setdefault(each, name)
    return {name: each for each, name in seen.items()}
