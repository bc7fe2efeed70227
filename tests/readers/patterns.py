"""The regular expressions that modules compile, as readers: each repeat meets more and more of what it repeats.

A new one is found by itself. It is given texts that are made of its own parts, in the way in which it is used: a
repeat that is tried from each place of a text anew, or two that share one run of characters, take time with the square
of the text.
"""

import ast
import gc
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Final

from tests.readers.reader import Reader, Shape

import payrelay
import payrelay_simulator
import payrelay_tools

LENGTH: Final = 4_096
"""Enough that the square of it shows beside what else a text costs; some of these texts have a smaller limit."""
OF_OUR_OWN: Final = {
    "payrelay.console.rules.live": "reads pages that we have rendered; in them, foreign text has no tags",
    "payrelay.store.engine.queries": "reads our own SQL, once a statement",
}
"""Modules whose patterns read no foreign text."""
_UNLIKE: Final = ("", "\0", "!")
"""What may stand behind a run, so that a match that went well so far fails at its end."""
_CHARACTERS: Final = "a0A -\"'\\.,;:/+%&=?@#_<>{}[]()*|~\n\t\0é" + "".join(map(chr, range(256)))
_DEPTH: Final = 6
_CONTAINERS: Final = (
    dict,
    list,
    tuple,
    partial,
    types.CellType,
    types.MethodType,
    types.MappingProxyType,
    classmethod,
    staticmethod,
)
_WAYS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "sub": lambda pattern, text: pattern.sub(text[:0], text),
    "finditer": lambda pattern, text: list(pattern.finditer(text)),
}
_parser: Final = import_module("re._parser")  # nothing else tells of what a pattern consists


def _modules() -> Iterator[types.ModuleType]:
    for package in (payrelay, payrelay_simulator, payrelay_tools):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__") and found.name not in OF_OUR_OWN:
                yield import_module(found.name)


def _held(value: object, depth: int = 0) -> Iterator[object]:
    """Finds patterns, and their methods, in what a module holds: in its functions, tables and values too."""
    if isinstance(value, re.Pattern) or isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value
        return
    if isinstance(value, types.FunctionType):
        value = value.__closure__ or ()
    is_ours = getattr(type(value), "__module__", "").startswith("payrelay")
    is_class = isinstance(value, type) and value.__module__.startswith("payrelay")
    if depth < _DEPTH and (is_ours or is_class or isinstance(value, _CONTAINERS)):
        for each in gc.get_referents(value):
            if each is not type(value):
                yield from _held(each, depth + 1)


def _used(module: types.ModuleType) -> dict[str, set[str]]:
    """Gives the methods by which a module uses each name."""
    ways: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            ways.setdefault(node.value.id, set()).add(node.attr)
    return ways


def _found() -> dict[tuple[str | bytes, int, str], tuple[str, "re.Pattern[Any]"]]:
    """Gives each pattern, with its flags and a method by which it is used, and the name that it has."""
    patterns: dict[tuple[str | bytes, int, str], tuple[str, re.Pattern[Any]]] = {}
    for module in _modules():
        ways = _used(module)
        for name, value in vars(module).items():
            for held in () if name.startswith("__") else _held(value):
                pattern: re.Pattern[Any] = held if isinstance(held, re.Pattern) else held.__self__  # type: ignore[attr-defined]
                methods = ways.get(name, set()) if held is pattern else {held.__name__}  # type: ignore[attr-defined]
                for method in (methods & set(dir(pattern))) - {"pattern", "flags"} or {"fullmatch"}:
                    known = (pattern.pattern, pattern.flags, method)
                    patterns.setdefault(known, (f"{module.__name__}.{name}.{method}", pattern))
    return patterns


def _character(members: list[tuple[Any, Any]]) -> Iterator[str]:
    """Gives characters of a set, the usual ones first."""
    fits = re.compile(_written(members), re.DOTALL).match
    return (each for each in _CHARACTERS if fits(each))


def _written(members: list[tuple[Any, Any]]) -> str:
    """Writes a set as a pattern again."""
    written = ""
    for kind, value in members:
        match str(kind):
            case "NEGATE":
                written += "^"
            case "LITERAL":
                written += re.escape(chr(value))
            case "RANGE":
                written += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
            case "CATEGORY":
                name = str(value).removeprefix("CATEGORY_")
                written += "\\" + (name[4].upper() if name.startswith("NOT_") else name[0].lower())
    return f"[{written}]"


def _sample(parts: Iterable[tuple[Any, Any]]) -> str:
    """Gives a short text that parts of a pattern match."""
    text = ""
    for kind, value in parts:
        match str(kind):
            case "LITERAL":
                text += chr(value)
            case "NOT_LITERAL":
                text += next(each for each in _CHARACTERS if ord(each) != value)
            case "ANY":
                text += "a"
            case "IN":
                text += next(_character(value))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                text += _sample(value[2]) * max(value[0], 1)
            case "SUBPATTERN":
                text += _sample(value[3])
            case "ATOMIC_GROUP":
                text += _sample(value)
            case "BRANCH":
                text += _sample(value[1][0])
    return text


def _runs(parts: Iterable[tuple[Any, Any]], before: str = "") -> Iterator[tuple[str, str]]:
    """Gives what each repeat repeats, with what comes before it in a match."""
    for kind, value in parts:
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield before, _sample(value[2])
                if [str(each) for each, _ in value[2]] == ["IN"]:
                    yield from ((before, each) for each in list(_character(value[2][0][1]))[:4])
                yield from _runs(value[2], before)
            case "SUBPATTERN":
                yield from _runs(value[3], before)
            case "ATOMIC_GROUP":
                yield from _runs(value, before)
            case "BRANCH":
                for branch in value[1]:
                    yield from _runs(branch, before)
            case "ASSERT" | "ASSERT_NOT":
                yield from _runs(value[1], before)
        before += _sample([(kind, value)])


def _texts_of(pattern: "re.Pattern[Any]") -> list[tuple[str, str, str]]:
    """Gives the beginnings, pieces and ends of the texts for a pattern."""
    source = pattern.pattern
    parts = _parser.parse(
        source.decode("latin-1") if isinstance(source, bytes) else source, pattern.flags & ~re.UNICODE
    )
    runs = {*_runs(parts), ("", _sample(parts))}
    runs |= {("", piece) for _, piece in runs}
    return sorted((before, piece, after) for before, piece in runs if piece for after in _UNLIKE)


def _reader(name: str, method: str, pattern: "re.Pattern[Any]") -> Reader:
    use = partial(_WAYS[method], pattern) if method in _WAYS else getattr(pattern, method)
    texts = _texts_of(pattern)

    def read(text: bytes) -> None:
        for before, piece, after in texts:
            long = before + piece * (len(text) // len(piece)) + after
            use(long.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else long)

    return Reader(name=name, read=read, longest=LENGTH, shapes=(Shape(f"{len(texts)} texts of its parts", b" "),))


READERS: Final = tuple(_reader(name, method, pattern) for (_, _, method), (name, pattern) in _found().items())
