"""The sources of the house as the rules read them: files, their text and their syntax."""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file of ours, as text and as a tree."""

    path: Path

    @cached_property
    def text(self) -> str:
        """Its characters."""
        return self.path.read_text()

    @cached_property
    def entries(self) -> list[str]:
        """Its lines, the first at 0."""
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All that its syntax consists of, walked once for some twenty rules: it takes longer than most of them."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[tuple[ast.stmt, str], ...]:
        """Every import in it, with the full name of what is imported."""
        return tuple(imports(self.nodes))

    @cached_property
    def name(self) -> str:
        """Where it is, from the source root or the project's."""
        return str(self.path.relative_to(ROOT)).removeprefix("src/").removeprefix("tools/")

    @property
    def room(self) -> str:
        """The layer that it belongs to: the first part of its path below the package, or what its part says."""
        return layer_of(self.name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))

    def at(self, node: ast.stmt | ast.expr | ast.excepthandler, message: str) -> str:
        """Writes what was found, with its place."""
        return f"{self.name}:{node.lineno} {message}"

    def functions(self) -> Iterator[Function]:
        """Gives every function of it, methods and inner ones too."""
        return (node for node in self.nodes if isinstance(node, Function))


def sources(*folders: str) -> list[Source]:
    """Gives every Python file below the folders."""
    return [Source(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


PARTS: Final = ("backups", "console", "demo", "imports", "reconciliation", "recovery")
"""What stands on the relay and can be deleted; each has rooms of all layers."""
LAYER_OF_ROOMS: Final = {
    "rules": "core",
    "store": "store",
    "runtime": "runtime",
    "flows": "flows",
    "acts": "flows",
    "commands": "cli",
    "opening": "app_commands",
    "part": "app_commands",
}
"""The layer of a room in a part, and ``pages`` where it isn't named here."""


def part_of(module: str) -> str | None:
    """Gives the part that a module belongs to; None for the relay."""
    name = module.split(".")[1] if "." in module else ""
    return name if name in PARTS else None


def layer_of(module: str) -> str:
    """Gives the layer of a module: the first name below the package; in a part, that of its room."""
    names = module.split(".")
    part = part_of(module)
    if len(names) == 1:
        return "__init__"
    if part is None or len(names) == 2:
        return names[1] if part is None else "__init__"
    if part == "demo":
        return "cli"
    return LAYER_OF_ROOMS.get(names[2], "pages")


OURS: Final = sources("src/payrelay")
SIMULATOR: Final = sources("src/payrelay_simulator")
TOOLS: Final = sources("tools")
REGISTRY: Final = "payrelay/gateways/registry.py"
ADAPTERS: Final = {source.name.split("/")[2] for source in OURS if source.name.endswith("/kind.py")}
"""A provider's folder makes a kind of gateway."""
TESTS: Final = sources("tests")


def found(rule: Callable[[Source], Iterator[str]], among: list[Source]) -> str:
    """Gives what a rule finds, a line each; an empty text when all is well."""
    return "\n".join(line for source in among for line in rule(source))


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.stmt, str]]:
    """Gives every import among nodes, with the full name of what is imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def module_name(source: Source) -> str:
    """Gives the name that it is imported by."""
    return source.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
