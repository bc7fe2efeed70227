"""The rooms of the house, held by small checks of the syntax tree: who may know whom, and where what stands.

Each rule is a test; what it finds it names by file and line, with the right way beside it. What they are for is told in
``docs/decisions/0001-rooms.md``.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.sources import OURS, PARTS, ROOT, SIMULATOR, TESTS, TOOLS, Source, found, layer_of, module_name, part_of

RANKS: Final = {
    "core": 0,
    "store": 1,
    "gateways": 1,
    "tracing": 1,
    "runtime": 2,
    "settings": 2,
    "flows": 3,
    "api": 4,
    "worker": 4,
    "parts": 5,
    "pages": 6,
    "app": 6,
    "app_commands": 7,
    "server": 7,
    "cli": 9,
    "__main__": 10,
}
"""A layer imports from itself and from layers of a smaller rank; layers of equal rank don't know each other."""
MAY_KNOW: Final = {
    "backups": set[str](),
    "console": set[str](),
    "demo": set[str](),
    "imports": set[str](),
    "reconciliation": {"console"},
    "recovery": set[str](),
}
"""The parts of the product, which stand on the layers and can be deleted, and which others each may know."""
PACKAGE: Final = ""
"""The package itself, which is no room: it holds the version."""
EVERYBODYS: Final = {"errors", "clock", "__init__"}
BESIDE: Final = {"payrelay_simulator", "payrelay_tools"}
"""Packages of their own, which need not be installed."""

MODULES_MAX: Final = 12
"""In one folder: as many as a reader takes in at a glance."""
MODULES_MAX_OF: Final = {"payrelay/cli": 18}
"""One file a group of commands; they are found by the command's name, and know nothing of each other."""

FAN_OUT_MAX: Final = 12
"""Modules of ours that one module names: beyond that it does more than one thing."""
COMPOSERS: Final = {
    "payrelay.app",
    "payrelay.backups.opening",
    "payrelay.app_commands",
    "payrelay.flows.stores",
    "payrelay.worker",
    "payrelay.console.routes",
    "payrelay.store.tables.digested",
    "payrelay.api.openapi.schemas",
}
"""The first three put everything together, and so name everything; the others list the stores, the jobs, the console's
pages, the tables with digests and the types of answers, and so name each."""
FAN_OUT_MAX_OF: Final = {
    # Tells one effect from its claim to its answer: divided, no reader could see the order, on which all rests.
    "payrelay.flows.payments.carry_out": 18,
    # Has the whole face of a gateway, whose values alone are of six modules, and hands each member on to its own file.
    "payrelay.gateways.payhere.client": 21,
}
"""Modules that need more, each with its number and its reason; at most two."""

REGISTRY: Final = "payrelay.gateways.registry"
ADAPTERS: Final = ("payrelay.gateways.payhere",)
DOORS: Final = {"api", "cli", "pages"}
SQL: Final = re.compile(
    r"^\s*(SELECT|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|WITH\s+\w+\s+AS)\b"
)
ENGINE: Final = "payrelay.store.engine"
ENGINE_MAY_KNOW: Final = (
    "payrelay.store.engine",
    "payrelay.core.database.schema_changes",
    "payrelay.core.database.store_status",
    "payrelay.errors",
    "payrelay.clock",
    "payrelay.core.secret",
    "payrelay.core.database.database_url",
    "payrelay.core.seal_keys",
)


_MODULES: Final = {module_name(source) for source in OURS}


@cache
def known(source: Source) -> tuple[tuple[ast.stmt, str], ...]:
    """Gives every module of ours that a file imports, with the place."""
    return tuple(
        (node, name if name in _MODULES else name.rpartition(".")[0])
        for node, name in source.imports
        if name.startswith("payrelay.")
    )


def room_of(module: str) -> str:
    """Gives the folder of a module, from the package; one at the top is a room of its own, and the package is none."""
    parts = module.split(".")[1:]
    return ".".join(parts[:1] if len(parts) < 3 else parts[:-1])


def test_imports_point_one_way() -> None:
    """A reader learns a layer with nothing but the layers below it."""

    def wrong_way(source: Source) -> Iterator[str]:
        for node, module in known(source):
            layer = layer_of(module)
            if layer in EVERYBODYS or source.room == layer:
                continue
            if source.room in EVERYBODYS or RANKS[layer] >= RANKS[source.room]:
                yield source.at(node, f"{source.room} must not know {layer}; pass what it needs down as an argument")

    assert found(wrong_way, OURS) == ""


def test_the_relay_knows_no_part() -> None:
    """A part is deleted with its folder; whoever reads the relay reads none."""

    def knows_part(source: Source) -> Iterator[str]:
        own = part_of(module_name(source))
        for node, module in known(source):
            part = part_of(module)
            if part not in {None, own, *MAY_KNOW.get(own or "", set[str]())}:
                yield source.at(node, f"{own or source.room} must not know {part}")

    assert found(knows_part, OURS) == ""
    assert MAY_KNOW.keys() == set(PARTS)


def test_every_layer_has_its_rank() -> None:
    """A new layer must say where it stands, or the rule above does not see it."""
    assert {source.room for source in OURS} - EVERYBODYS <= RANKS.keys()


def test_the_simulator_stands_alone() -> None:
    """It judges what payrelay does; with shared code it would share the mistakes."""

    def knows_payrelay(source: Source) -> Iterator[str]:
        for node, name in source.imports:
            if name.split(".")[0] in {"payrelay", "payrelay_tools"}:
                yield source.at(node, "the simulator has its own code for this")

    assert found(knows_payrelay, SIMULATOR) == ""


def test_only_commands_need_a_package_beside() -> None:
    """The service starts without them, and a command says in one line which one it lacks."""

    def needs_other(source: Source) -> Iterator[str]:
        for node, name in source.imports:
            if name.split(".")[0] in BESIDE and source.room != "cli":
                yield source.at(node, "only the command line uses a package that may be missing")

    def needs_simulator(source: Source) -> Iterator[str]:
        for node, name in source.imports:
            if name.split(".")[0] == "payrelay_simulator":
                yield source.at(node, "the tools work without the simulator")

    assert found(needs_other, OURS) + found(needs_simulator, TOOLS) == ""


def test_no_module_imports_itself_by_a_detour() -> None:
    """Modules in a circle can only be understood, and changed, all at once."""
    graph = {module_name(source): {module for _, module in known(source)} for source in OURS}

    assert circles(graph) == set()


def test_rooms_stand_in_no_circle() -> None:
    """What holds of modules holds of the folders that they stand in, so that each can be read by itself."""
    graph: dict[str, set[str]] = defaultdict(set)
    for source in OURS:
        if module_name(source) == REGISTRY:  # names the adapters below it, as app names everything
            continue
        room = room_of(module_name(source))
        graph[room] |= {room_of(module) for _, module in known(source)} - {room, PACKAGE}

    assert circles(graph) == set()


def circles(graph: dict[str, set[str]]) -> set[str]:
    """Gives whatever can be reached from itself by way of another."""

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        ahead = graph[name] - {name}
        while ahead:
            seen |= ahead
            ahead = set[str]().union(*(graph.get(each, set()) for each in ahead)) - seen
        return seen

    return {name for name in graph if name in reached(name)}


def test_nobody_but_the_registry_knows_an_adapter() -> None:
    """A second gateway is a new folder and a line in the registry, and nothing else."""

    def knows_adapter(source: Source) -> Iterator[str]:
        if module_name(source) == REGISTRY or module_name(source).startswith(ADAPTERS):
            return
        for node, module in known(source):
            if module.startswith(ADAPTERS):
                yield source.at(node, "ask the registry, or what gateways.gateway promises")

    assert found(knows_adapter, OURS) == ""


def test_doors_read_no_store() -> None:
    """API and commands call a flow: what may be read or written, and by whom, is said there once."""

    def reads_store(source: Source) -> Iterator[str]:
        for node, module in known(source):
            if source.room in DOORS and layer_of(module) == "store":
                yield source.at(node, "call a flow; it reads the store")

    assert found(reads_store, OURS) == ""


def test_sql_stands_in_the_store_alone() -> None:
    """Whoever changes a table finds all that names it in one place."""

    def holds_sql(source: Source) -> Iterator[str]:
        if source.room == "store":
            return
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
                yield source.at(node, "a statement belongs to the store")

    assert found(holds_sql, OURS) == ""


def test_the_engine_knows_no_noun() -> None:
    """Databases, migrations and units of work are the same, whatever is kept with them."""

    def knows_noun(source: Source) -> Iterator[str]:
        if not module_name(source).startswith(ENGINE):
            return
        for node, module in known(source):
            if not module.startswith(ENGINE_MAY_KNOW):
                yield source.at(node, "the engine knows no noun; a noun calls the engine")

    assert found(knows_noun, OURS) == ""


def test_a_folder_is_taken_in_at_a_glance() -> None:
    """A folder with forty files says nothing by its list."""
    sizes = Counter(
        str(source.path.parent.relative_to(ROOT / "src")) for source in OURS if source.path.name != "__init__.py"
    )

    assert {name: size for name, size in sizes.items() if size > MODULES_MAX_OF.get(name, MODULES_MAX)} == {}


def test_a_module_leans_on_few_others() -> None:
    """What names everything can't be changed without knowing everything."""
    too_many = {
        module_name(source): len(names)
        for source in OURS
        if (names := {module for _, module in known(source)} - {module_name(source)}) and len(names) > FAN_OUT_MAX
    }

    too_many = {name: count for name, count in too_many.items() if name not in COMPOSERS}
    assert {name: count for name, count in too_many.items() if count > FAN_OUT_MAX_OF.get(name, 0)} == {}
    assert FAN_OUT_MAX_OF.keys() <= too_many.keys()
    assert len(FAN_OUT_MAX_OF) <= 2


def test_a_public_class_has_a_name_of_its_own() -> None:
    """A name that is read in a log, a traceback or a search leads to one place."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in OURS:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(source.at(node, node.name))

    assert [lines for lines in places.values() if len(lines) > 1] == []


def test_tests_cast_nothing_to_a_class_of_ours() -> None:
    """A double that is cast is held to no promise: it must have the face that it stands for."""
    classes = {node.name for source in OURS for node in source.nodes if isinstance(node, ast.ClassDef)}

    def casts(source: Source) -> Iterator[str]:
        for node in source.nodes:
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "cast"):
                continue
            if {word for word in re.findall(r"\w+", ast.unparse(node.args[0])) if word in classes}:
                yield source.at(node, "give the double the Protocol that it stands for")

    assert found(casts, TESTS) == ""
