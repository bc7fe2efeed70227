"""The rules of the house that no linter knows, as small checks of the syntax tree.

Each rule is a test; what it finds it names by file and line, with the right way beside it.
"""

import ast
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FUNCTION_LINES_MAX: Final = 70
FILE_LINES_MAX: Final = 700
NESTING_MAX: Final = 4
ARGUMENTS_MAX: Final = 7

RANKS: Final = {
    "core": 0,
    "store": 1,
    "gateways": 1,
    "operations": 2,
    "settings": 2,
    "api": 3,
    "console": 3,
    "worker": 3,
    "app": 4,
    "check": 5,
    "server": 5,
    "operation_pages": 5,
    "operator_session": 5,
    "account_commands": 6,
    "demo": 6,
    "audit_commands": 6,
    "customer_commands": 6,
    "seal_commands": 6,
    "client_token_commands": 6,
    "endpoint_commands": 6,
    "key_commands": 6,
    "notification_commands": 6,
    "operation_commands": 6,
    "settle_command": 6,
    "cli": 7,
    "__main__": 8,
}
"""A room imports from itself and from rooms of a smaller rank; rooms of equal rank don't know each other."""
EVERYBODYS: Final = {"errors", "clock", "__init__"}
OPENERS: Final = {"app", "operations", "store"}
"""Who may import the store: the stories, and the module that opens it. Doors, commands and settings work with values of
the core, and with what stories and ``app`` give them."""
LAZY_ALLOWED: Final = {"cli", "key_commands"}
"""The command line loads a web server only where it serves."""
SIMULATOR_STARTERS: Final = {"cli", "demo"}

PURE: Final = (
    "payrelay/core/",
    "payrelay/gateways/payhere/wire/effects.py",
    "payrelay/gateways/payhere/wire/forms.py",
    "payrelay/gateways/payhere/wire/grants.py",
    "payrelay/gateways/payhere/wire/notifications.py",
    "payrelay/gateways/payhere/wire/plans.py",
    "payrelay/gateways/payhere/wire/reads.py",
    "payrelay/gateways/payhere/wire/replies.py",
    "payrelay/gateways/payhere/wire/requests.py",
)
IMPURE_MODULES: Final = {
    "aiohttp",
    "asyncio",
    "concurrent",
    "io",
    "os",
    "pathlib",
    "payrelay.clock",
    "random",
    "secrets",
    "shutil",
    "socket",
    "sqlite3",
    "ssl",
    "structlog",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
IMPURE_CALLS: Final = {"open", "print", "input", "now", "today", "utcnow"}

BRANCHES: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.Match)
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
    def lines(self) -> list[str]:
        """Its lines, the first at 0."""
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @cached_property
    def name(self) -> str:
        """Where it is, from the source root or the project's."""
        return str(self.path.relative_to(ROOT)).removeprefix("src/")

    @property
    def room(self) -> str:
        """The first part of its path below the package."""
        return self.name.split("/")[1].removesuffix(".py")

    def at(self, node: ast.stmt | ast.expr | ast.excepthandler, message: str) -> str:
        """Writes what was found, with its place."""
        return f"{self.name}:{node.lineno} {message}"

    def functions(self) -> Iterator[Function]:
        """Gives every function of it, methods and inner ones too."""
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))


def sources(*folders: str) -> list[Source]:
    """Gives every Python file below the folders."""
    return [Source(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


OURS: Final = sources("src/payrelay")
SIMULATOR: Final = sources("src/payrelay_simulator")
REGISTRY: Final = "payrelay/gateways/registry.py"
ADAPTERS: Final = {source.name.split("/")[2] for source in OURS if source.name.endswith("/kind.py")}
"""A provider's folder makes a kind of gateway."""
TESTS: Final = sources("tests")


def found(rule: Callable[[Source], Iterator[str]], among: list[Source]) -> str:
    """Gives what a rule finds, a line each; an empty text when all is well."""
    return "\n".join(line for source in among for line in rule(source))


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Gives every import below a node, with the full name of what is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def code_lines(source: Source, function: Function) -> int:
    """Counts the lines of a function that are neither blank, comment nor docstring."""
    documented = function.body[0] if ast.get_docstring(function) else None
    skipped = range(documented.lineno, (documented.end_lineno or 0) + 1) if documented else range(0)
    numbers = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return sum(
        number not in skipped and bool(line := source.lines[number - 1].strip()) and not line.startswith("#")
        for number in numbers
    )


def nesting(node: ast.AST, depth: int = 0) -> int:
    """Gives how deep the branches of a function stand inside one another; an elif is as deep as its if."""
    deepest = depth
    for name, value in ast.iter_fields(node):
        children = [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]
        is_elif = name == "orelse" and isinstance(node, ast.If) and len(children) == 1
        for child in children:
            steps_in = isinstance(child, BRANCHES) and not (is_elif and isinstance(child, ast.If))
            deepest = max(deepest, nesting(child, depth + steps_in))
    return deepest


def wrong_way_imports(source: Source) -> Iterator[str]:
    """Finds imports of rooms that this one must not know."""
    for node, name in imports(source.tree):
        parts = name.split(".")
        if parts[0] == "payrelay_simulator" and source.room not in SIMULATOR_STARTERS:
            yield source.at(node, "only the command line starts the simulator")
        if parts[0] != "payrelay" or len(parts) == 1 or parts[1] in EVERYBODYS:
            continue
        known = parts[1] in RANKS and source.room in RANKS
        if known and source.room != parts[1] and RANKS[parts[1]] >= RANKS[source.room]:
            yield source.at(node, f"{source.room} must not know {parts[1]}; pass what it needs down as an argument")


def test_imports_point_one_way() -> None:
    """A reader learns a room with nothing but the rooms below it."""
    assert found(wrong_way_imports, OURS) == ""


def test_no_door_reaches_past_the_stories_into_the_store() -> None:
    """What a door may do with the store is said once, by a story, and holds of the API, commands and worker alike."""

    def reaching(source: Source) -> Iterator[str]:
        if source.room not in OPENERS:
            for node, name in imports(source.tree):
                if f"{name}.".startswith("payrelay.store."):
                    yield source.at(node, f"{source.room} must not know the store; name a value of core, call a story")

    assert found(reaching, OURS) == ""


def test_every_room_has_its_place() -> None:
    """A new module at the top must say where it stands, or the rule above does not see it."""
    assert {source.room for source in OURS} - EVERYBODYS <= RANKS.keys()


def imports_of_adapters(source: Source) -> Iterator[str]:
    """Finds imports of a provider's folder from outside it."""
    for node, name in imports(source.tree):
        parts = name.split(".")
        is_adapter = parts[:2] == ["payrelay", "gateways"] and parts[2:3] and parts[2] in ADAPTERS
        if is_adapter and source.name != REGISTRY and not source.name.startswith(f"payrelay/gateways/{parts[2]}/"):
            yield source.at(node, "only the registry knows an adapter; ask for a Kind there, or take a Gateway")


def test_only_the_registry_knows_an_adapter() -> None:
    """Whatever else knew one would have to be changed for every provider that is added."""
    assert {"payhere"} <= ADAPTERS
    assert found(imports_of_adapters, OURS) == ""


def test_the_simulator_stands_alone() -> None:
    """It judges what payrelay does; with shared code it would share the mistakes."""

    def knows_payrelay(source: Source) -> Iterator[str]:
        for node, name in imports(source.tree):
            if name.split(".")[0] == "payrelay":
                yield source.at(node, "the simulator has its own code for this")

    assert found(knows_payrelay, SIMULATOR) == ""


def module_name(source: Source) -> str:
    """Gives the name that it is imported by."""
    return source.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(source: Source, modules: Container[str]) -> Iterator[str]:
    """Gives which of the modules a file imports."""
    for _, name in imports(source.tree):
        module = name if name in modules else name.rpartition(".")[0]
        if module in modules:
            yield module


def test_no_module_imports_itself_by_a_detour() -> None:
    """Modules in a circle can only be understood, and changed, all at once."""
    modules = {module_name(source): source for source in OURS + SIMULATOR}
    graph = {name: set(imported(source, modules.keys())) - {name} for name, source in modules.items()}
    reached = {name: set(targets) for name, targets in graph.items()}
    for _ in modules:
        reached = {name: targets.union(*(reached[each] for each in targets)) for name, targets in reached.items()}

    assert [name for name in reached if name in reached[name]] == []


def test_imports_stand_at_the_head() -> None:
    """A late import hides what a module needs; the command line alone may."""

    def late(source: Source) -> Iterator[str]:
        if source.room in LAZY_ALLOWED:
            return
        for function in source.functions():
            yield from (source.at(node, "import at the head of the file") for node, _ in imports(function))

    assert found(late, OURS + SIMULATOR) == ""


def is_pure(source: Source) -> bool:
    """True where a file must not wait, look or do."""
    return source.name.startswith(PURE)


def impurities(source: Source) -> Iterator[str]:
    """Finds whatever makes a result depend on more than the arguments."""
    for node, name in imports(source.tree):
        if any(f"{name}.".startswith(f"{module}.") for module in IMPURE_MODULES):
            yield source.at(node, f"a pure module does not import {name}; take what it gives as an argument")
    for each in ast.walk(source.tree):
        if isinstance(each, ast.AsyncFunctionDef | ast.Await):
            yield source.at(each, "a pure module does not wait")
        if isinstance(each, ast.Call) and called(each) in IMPURE_CALLS:
            yield source.at(each, f"a pure module does not call {called(each)}()")


def called(call: ast.Call) -> str:
    """Gives the last part of the name that is called."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_what_decides_is_pure() -> None:
    """The core and the wire format are tested without a clock, a network or a disk, because they have none."""
    assert len([source for source in OURS if is_pure(source)]) > len(PURE)
    assert found(impurities, [source for source in OURS if is_pure(source)]) == ""


def test_functions_fit_on_a_screen() -> None:
    """What is longer tells more than one story."""

    def too_long(source: Source) -> Iterator[str]:
        for function in source.functions():
            if code_lines(source, function) > FUNCTION_LINES_MAX:
                yield source.at(function, f"{function.name} has over {FUNCTION_LINES_MAX} lines of code; split it")

    assert found(too_long, OURS + SIMULATOR + TESTS) == ""


def test_files_are_one_noun_or_one_story() -> None:
    """A file that grows beyond this has become two."""

    def too_long(source: Source) -> Iterator[str]:
        if len(source.lines) > FILE_LINES_MAX:
            yield f"{source.name} has over {FILE_LINES_MAX} lines; give its second subject a file of its own"

    assert found(too_long, OURS + SIMULATOR + TESTS) == ""


def test_branches_are_shallow() -> None:
    """Ifs up, fors down: what stands deeper is a function without a name."""

    def too_deep(source: Source) -> Iterator[str]:
        for function in source.functions():
            if nesting(function) > NESTING_MAX:
                yield source.at(function, f"{function.name} is nested over {NESTING_MAX} deep; name the inner part")

    assert found(too_deep, OURS + SIMULATOR + TESTS) == ""


def test_arguments_are_few() -> None:
    """More of them are a frozen value that has no name yet."""

    def too_many(source: Source) -> Iterator[str]:
        for function in source.functions():
            named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            if len([each for each in named if each.arg not in {"self", "cls"}]) > ARGUMENTS_MAX:
                yield source.at(function, f"{function.name} has over {ARGUMENTS_MAX} arguments; make a value of them")

    assert found(too_many, OURS + SIMULATOR) == ""


def test_every_module_opens_with_a_sentence() -> None:
    """A stranger learns what a file is for before reading it."""

    def silent(source: Source) -> Iterator[str]:
        if not ast.get_docstring(source.tree) and source.text.strip():
            yield f"{source.name} says nothing; open it with a sentence on what it is for"

    assert found(silent, OURS + SIMULATOR) == ""


def test_every_test_says_why_it_matters() -> None:
    """A red test without a sentence leaves the reader to guess whether the test or the code is wrong."""

    def silent(source: Source) -> Iterator[str]:
        for function in source.functions():
            if function.name.startswith("test_") and not ast.get_docstring(function):
                yield source.at(function, f"{function.name} needs a docstring: what is true, and why it matters")

    assert found(silent, TESTS) == ""


def patches(source: Source) -> Iterator[str]:
    """Finds mocks and patches."""
    for node, name in imports(source.tree):
        if name.startswith(("unittest.mock", "pytest_mock")):
            yield source.at(node, "no mocks: use the real thing, the simulator, or a value that is passed in")
    for call in ast.walk(source.tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"monkeypatch.setattr", "monkeypatch.setitem"}:
            yield source.at(call, "no patching: pass it in as an argument")


def test_tests_patch_nothing() -> None:
    """A patched test passes on code that no longer exists."""
    assert found(patches, TESTS) == ""


def sleeps(source: Source) -> Iterator[str]:
    """Finds waits for a span of time; scenarios may wait for other processes."""
    if source.name.startswith("tests/scenarios/"):
        return
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or called(node) != "sleep" or ast.unparse(node.args[0]) == "0":
            continue
        if "  # " not in source.lines[node.lineno - 1]:
            yield source.at(node, "no sleeping: bring a clock, wait for an event (or say why not in a comment there)")


def test_tests_do_not_sleep() -> None:
    """A sleep is too short on a busy machine and too long on every other."""
    assert found(sleeps, TESTS) == ""


def broad(source: Source) -> Iterator[str]:
    """Finds handlers of all exceptions that end them and give no reason."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.ExceptHandler) or ast.unparse(node.body[-1]) == "raise":
            continue
        caught = ast.unparse(node.type) if node.type else "BaseException"
        nearby = "\n".join(source.lines[node.lineno - 2 : node.body[0].lineno])
        if re.search(r"\b(Base)?Exception\b", caught) and not re.search(
            r"# (noqa: [A-Z0-9]+[ ,-]+)?(?!noqa)\w", nearby
        ):
            yield source.at(node, "say in a comment why everything is caught here")


def test_who_catches_everything_says_why() -> None:
    """It hides mistakes, so there must be a reason."""
    assert found(broad, OURS + SIMULATOR) == ""


def test_the_settings_alone_read_the_environment() -> None:
    """What a program does must not depend on variables that nobody checked at its start."""

    def reads(source: Source) -> Iterator[str]:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}:
                yield source.at(node, "take it from the settings")

    assert found(reads, [source for source in OURS + SIMULATOR if source.room != "settings"]) == ""


def records(source: Source) -> Iterator[str]:
    """Finds the calls that store a change of an operation: ``journal.record``, of whatever the journal is a part."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "record":
            owner = ast.unparse(node.value).rpartition(".")[2]
            if owner.removeprefix("_") == "journal":
                yield source.at(node, "bring what happened to an operation as a Report to operations.apply")


def test_an_operation_changes_in_one_way() -> None:
    """What is written five times is five times a little different: guard, claim, answer and stages belong together."""
    ways = [line for line in found(records, OURS).splitlines() if line]
    tables = [
        source.name
        for source in OURS
        if any(f".{name}".endswith(".operations.advance") for _, name in imports(source.tree))
    ]

    assert [way.partition(":")[0].rpartition("/")[2] for way in ways] == ["apply.py"], "\n".join(ways)
    assert [name.rpartition("/")[2] for name in tables] == ["changes.py"], "what follows is decided in core.changes"


def test_names_say_what_a_module_is() -> None:
    """A drawer for everything is found by nobody."""
    drawers = {"utils", "helpers", "common", "base", "manager", "service", "misc"}

    assert [source.name for source in OURS + SIMULATOR if source.path.stem in drawers] == []
