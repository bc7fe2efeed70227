"""The rules of the house that no linter knows, as small checks of the syntax tree.

Each rule is a test; what it finds it names by file and line, with the right way beside it.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.sources import OURS, PARTS, SIMULATOR, TESTS, TOOLS, Function, Source, found, imports

FUNCTION_LINES_MAX: Final = 70
FILE_LINES_MAX: Final = 700
NESTING_MAX: Final = 4
ARGUMENTS_MAX: Final = 7

LAZY_ALLOWED: Final = {"cli", "app_commands"}
"""The command line loads a web server only where it serves."""
PURE: Final = ("payrelay/core/", "payrelay/gateways/payhere/wire/", *(f"payrelay/{part}/rules/" for part in PARTS))
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


def code_lines(source: Source, function: Function) -> int:
    """Counts the lines of a function that are neither blank, comment nor docstring."""
    documented = function.body[0] if ast.get_docstring(function) else None
    skipped = range(documented.lineno, (documented.end_lineno or 0) + 1) if documented else range(0)
    numbers = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return sum(
        number not in skipped and bool(line := source.entries[number - 1].strip()) and not line.startswith("#")
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


def test_imports_stand_at_the_head() -> None:
    """A late import hides what a module needs; the command line alone may."""

    def late(source: Source) -> Iterator[str]:
        if source.room in LAZY_ALLOWED:
            return
        for function in source.functions():
            yield from (source.at(node, "import at the head of the file") for node, _ in imports(ast.walk(function)))

    assert found(late, OURS + SIMULATOR + TOOLS) == ""


def is_pure(source: Source) -> bool:
    """True where a file must not wait, look or do."""
    return source.name.startswith(PURE)


def impurities(source: Source) -> Iterator[str]:
    """Finds whatever makes a result depend on more than the arguments."""
    for node, name in source.imports:
        if any(f"{name}.".startswith(f"{module}.") for module in IMPURE_MODULES):
            yield source.at(node, f"a pure module does not import {name}; take what it gives as an argument")
    for each in source.nodes:
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
    for folder in PURE[:2]:
        assert any(source.name.startswith(folder) for source in OURS), folder
    assert found(impurities, [source for source in OURS if is_pure(source)]) == ""


def test_functions_fit_on_a_screen() -> None:
    """What is longer tells more than one story."""

    def too_long(source: Source) -> Iterator[str]:
        for function in source.functions():
            if code_lines(source, function) > FUNCTION_LINES_MAX:
                yield source.at(function, f"{function.name} has over {FUNCTION_LINES_MAX} lines of code; split it")

    assert found(too_long, OURS + SIMULATOR + TOOLS + TESTS) == ""


def test_files_are_one_noun_or_one_story() -> None:
    """A file that grows beyond this has become two."""

    def too_long(source: Source) -> Iterator[str]:
        if len(source.entries) > FILE_LINES_MAX:
            yield f"{source.name} has over {FILE_LINES_MAX} lines; give its second subject a file of its own"

    assert found(too_long, OURS + SIMULATOR + TOOLS + TESTS) == ""


def test_branches_are_shallow() -> None:
    """Ifs up, fors down: what stands deeper is a function without a name."""

    def too_deep(source: Source) -> Iterator[str]:
        for function in source.functions():
            if nesting(function) > NESTING_MAX:
                yield source.at(function, f"{function.name} is nested over {NESTING_MAX} deep; name the inner part")

    assert found(too_deep, OURS + SIMULATOR + TOOLS + TESTS) == ""


def test_arguments_are_few() -> None:
    """More of them are a frozen value that has no name yet."""

    def too_many(source: Source) -> Iterator[str]:
        for function in source.functions():
            named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            if len([each for each in named if each.arg not in {"self", "cls"}]) > ARGUMENTS_MAX:
                yield source.at(function, f"{function.name} has over {ARGUMENTS_MAX} arguments; make a value of them")

    assert found(too_many, OURS + SIMULATOR + TOOLS) == ""


def test_every_module_opens_with_a_sentence() -> None:
    """A stranger learns what a file is for before reading it."""

    def silent(source: Source) -> Iterator[str]:
        if not ast.get_docstring(source.tree) and source.text.strip():
            yield f"{source.name} says nothing; open it with a sentence on what it is for"

    assert found(silent, OURS + SIMULATOR + TOOLS) == ""


def test_every_test_says_why_it_matters() -> None:
    """A red test without a sentence leaves the reader to guess whether the test or the code is wrong."""

    def silent(source: Source) -> Iterator[str]:
        for function in source.functions():
            if function.name.startswith("test_") and not ast.get_docstring(function):
                yield source.at(function, f"{function.name} needs a docstring: what is true, and why it matters")

    assert found(silent, TESTS) == ""


def patches(source: Source) -> Iterator[str]:
    """Finds mocks and patches."""
    for node, name in source.imports:
        if name.startswith(("unittest.mock", "pytest_mock")):
            yield source.at(node, "no mocks: use the real thing, the simulator, or a value that is passed in")
    for call in source.nodes:
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"monkeypatch.setattr", "monkeypatch.setitem"}:
            yield source.at(call, "no patching: pass it in as an argument")


def test_tests_patch_nothing() -> None:
    """A patched test passes on code that no longer exists."""
    assert found(patches, TESTS) == ""


def sleeps(source: Source) -> Iterator[str]:
    """Finds waits for a span of time; scenarios may wait for other processes."""
    if source.name.startswith("tests/scenarios/"):
        return
    for node in source.nodes:
        if not isinstance(node, ast.Call) or called(node) != "sleep" or ast.unparse(node.args[0]) == "0":
            continue
        if "  # " not in source.entries[node.lineno - 1]:
            yield source.at(node, "no sleeping: bring a clock, wait for an event (or say why not in a comment there)")


def test_tests_do_not_sleep() -> None:
    """A sleep is too short on a busy machine and too long on every other."""
    assert found(sleeps, TESTS) == ""


def broad(source: Source) -> Iterator[str]:
    """Finds handlers of all exceptions that end them and give no reason."""
    for node in source.nodes:
        if not isinstance(node, ast.ExceptHandler) or ast.unparse(node.body[-1]) == "raise":
            continue
        caught = ast.unparse(node.type) if node.type else "BaseException"
        nearby = "\n".join(source.entries[node.lineno - 2 : node.body[0].lineno])
        if re.search(r"\b(Base)?Exception\b", caught) and not re.search(
            r"# (noqa: [A-Z0-9]+[ ,-]+)?(?!noqa)\w", nearby
        ):
            yield source.at(node, "say in a comment why everything is caught here")


def test_who_catches_everything_says_why() -> None:
    """It hides mistakes, so there must be a reason."""
    assert found(broad, OURS + SIMULATOR + TOOLS) == ""


def test_the_settings_alone_read_the_environment() -> None:
    """What a program does must not depend on variables that nobody checked at its start."""

    def reads(source: Source) -> Iterator[str]:
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}:
                yield source.at(node, "take it from the settings")

    assert found(reads, [source for source in OURS + SIMULATOR + TOOLS if source.room != "settings"]) == ""


def records(source: Source) -> Iterator[str]:
    """Finds the calls that store a change of an operation: ``journal.record``, of whatever the journal is a part."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "record":
            owner = ast.unparse(node.value).rpartition(".")[2]
            if owner.removeprefix("_") == "journal":
                yield source.at(node, "bring what happened to an operation as a Report to flows.apply_change")


def test_an_operation_changes_in_one_way() -> None:
    """What is written five times is five times a little different: guard, claim, answer and stages belong together."""
    ways = [line for line in found(records, OURS).splitlines() if line]
    tables = [
        source.name for source in OURS if any(f".{name}".endswith(".operation.advance") for _, name in source.imports)
    ]

    assert [way.partition(":")[0].rpartition("/")[2] for way in ways] == ["apply_change.py"], "\n".join(ways)
    assert [name.rpartition("/")[2] for name in tables] == ["changes.py"], (
        "what follows is decided in core.payments.changes"
    )


def test_names_say_what_a_module_is() -> None:
    """A drawer for everything is found by nobody."""
    drawers = {"utils", "helpers", "common", "base", "manager", "service", "misc"}

    assert [source.name for source in OURS + SIMULATOR + TOOLS if source.path.stem in drawers] == []
