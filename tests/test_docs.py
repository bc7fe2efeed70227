"""The docs tell of everything that a user meets, and what they repeat from the code is what the code says."""

import importlib.util
import re
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
import typer
from tests.resolution.table import drawn
from typer.core import TyperGroup

from payrelay.api.requests.route import Route
from payrelay.api.routes.table import ROUTES
from payrelay.cli.main import commands
from payrelay.core.payments.operation import TRANSITIONS, State
from payrelay.errors import Code
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.registry import KINDS
from payrelay.settings import (
    CONFIG_VARIABLE,
    ConsoleSettings,
    EventSettings,
    IdentitySettings,
    ReconciliationSettings,
    RetentionSettings,
    Settings,
    model_of,
    variable_name,
)

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
PAGES: Final = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
GATEWAY_FIELDS: Final = [
    f"PAYRELAY_GATEWAYS__<NAME>__{field.upper()}" for field in model_of(KINDS[PAYHERE]).model_fields
]
SECTIONS: Final = {"gateways", "events", "identity", "reconciliation", "retention", "console"}
SETTINGS: Final = [
    *(variable_name((field,)) for field in Settings.model_fields if field not in SECTIONS),
    *(variable_name(("console", field)) for field in ConsoleSettings.model_fields),
    *(variable_name(("identity", field)) for field in IdentitySettings.model_fields),
    *(variable_name(("events", field)) for field in EventSettings.model_fields),
    *(variable_name(("reconciliation", field)) for field in ReconciliationSettings.model_fields),
    *(variable_name(("retention", field)) for field in RetentionSettings.model_fields),
]


def drawing() -> ModuleType:
    """Loads the script that draws the tables; it stands beside the pages, not in a package."""
    spec = importlib.util.spec_from_file_location("draw", DOCS / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def typed_commands() -> list[str]:
    """Gives every command as it is typed."""
    context = typer.Context(commands)
    found = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
    inner = {name: command for name, command in found.items() if isinstance(command, TyperGroup)}
    plain = [name for name in found if name not in inner]
    return plain + [f"{name} {each}" for name, command in inner.items() for each in command.commands]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_what_repeats_the_code_is_drawn_from_it(page: Path) -> None:
    """A table that was copied by hand is wrong from the next change on; `docs/draw.py` draws it anew."""
    assert page.read_text() == drawing().redrawn(page.read_text())


def test_the_diagram_of_states_has_every_step() -> None:
    """An operator reads it to know what can still happen; it must be the table that decides."""
    diagram = (DOCS / "operations.md").read_text()

    for (state, event), target in TRANSITIONS.items():
        assert f"    {state} --> {target}: {event}\n" in diagram


@pytest.mark.parametrize("name", [*GATEWAY_FIELDS, *SETTINGS, CONFIG_VARIABLE])
def test_every_setting_is_described(name: str) -> None:
    """A setting that nobody knows of is not there."""
    assert f"| `{name}` |" in (DOCS / "configuration.md").read_text()


def test_no_setting_is_described_that_is_none() -> None:
    """A promise in the docs that the program refuses at its start."""
    described = set(re.findall(r"^\| `(PAYRELAY_[A-Z_<>]+)` \|", (DOCS / "configuration.md").read_text(), re.MULTILINE))

    assert described == {*GATEWAY_FIELDS, *SETTINGS, CONFIG_VARIABLE}


@pytest.mark.parametrize("code", Code)
def test_every_error_code_is_described(code: Code) -> None:
    """A client's developer looks an error up by its code."""
    assert f"| `{code}` |" in (DOCS / "errors.md").read_text()


@pytest.mark.parametrize("state", State)
def test_every_state_is_described(state: State) -> None:
    """The same for the states of an operation."""
    assert f"| `{state}` |" in (DOCS / "operations.md").read_text()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_is_described(route: Route) -> None:
    """Nothing is served that can't be read about."""
    assert f"| `{route.method}` | `{route.path}` |" in (DOCS / "api.md").read_text()


@pytest.mark.parametrize("command", typed_commands())
def test_every_command_is_described(command: str) -> None:
    """In the table, and where it has options in a section of its own."""
    assert f"| `payrelay {command}` |" in (DOCS / "commands.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A reader who follows one finds a file."""
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page: Path) -> None:
    """A reader who follows one into a page stands before what was promised, not at its head."""
    targets = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", page.read_text())

    assert [
        f"{to}#{heading}" for to, heading in targets if heading not in anchors(page.parent / to if to else page)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_call_with_a_body_says_what_it_is(page: Path) -> None:
    """Whoever copies a call gets what the page says, and not 415: curl alone would call the body a form."""
    commands_of_page = re.findall(r"^ *(?:\$ )?curl (?:.*\\\n)*.*$", page.read_text(), re.MULTILINE)
    of_ours = [each for each in commands_of_page if "/api/" in each]

    assert [each for each in of_ours if " -d " in each and "Content-Type: application/json" not in each] == []


def anchors(page: Path) -> set[str]:
    """Gives the names by which links reach the headings of a page, as GitHub makes them."""
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_newest_change_is_of_this_version() -> None:
    """A release without its notes can't be trusted."""
    newest = re.search(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert newest is not None
    assert newest[1] == metadata.version("payrelay")


def test_the_page_of_faults_is_the_table_that_is_tried() -> None:
    """What is promised for a bad day is what was lived through."""
    assert drawn() in (DOCS / "faults.md").read_text(encoding="utf-8")


def test_the_architecture_names_files_that_are_there() -> None:
    """A newcomer follows the page with the tree beside it; a path that has moved leads nowhere."""
    named = re.findall(r"`([\w./-]+(?:\.py|/))`", (ROOT / "ARCHITECTURE.md").read_text())
    roots = (ROOT / "src" / "payrelay", ROOT / "src", ROOT)

    assert named != []
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []
