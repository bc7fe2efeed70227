"""Every statement that the program declares, by the name under which it is declared."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Final

from tests.sources import PARTS

from payrelay.store.engine.queries import Query

_HELD_IN: Final = (tuple, list)


def declared() -> dict[str, Query]:
    """Finds the queries in all modules of the stores, the parts' too, also those in tuples and dictionaries."""
    found: dict[str, Query] = {}
    for store in ("payrelay.store", *(f"payrelay.{part}.store" for part in PARTS)):
        if importlib.util.find_spec(store) is None:
            continue
        for module in pkgutil.walk_packages(importlib.import_module(store).__path__, f"{store}."):
            loaded = importlib.import_module(module.name)
            source = inspect.getsource(loaded)
            short = module.name.removeprefix(f"{store}.").removeprefix("statements.")
            for name, value in vars(loaded).items():
                if name.isupper() and re.search(rf"^{name}\b.*=", source, re.MULTILINE):  # and isn't imported there
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
