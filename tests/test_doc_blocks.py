"""Every fenced block of the docs is run beside one demo, or its syntax is tried; one that can't be says why."""

import ast
import json
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import typer
import yaml
from tests.deploy.programs import said_by
from tests.doc_blocks import (
    DATA,
    RUNS,
    Block,
    blocks_of,
    commands_in,
    is_part_of_session,
    missing,
    pages,
    printed,
    session,
    wrong,
)
from tests.needed import lacking
from tests.scenarios.program import PAYRELAY, free_port, surroundings
from tests.scenarios.shops import Shop, autoloader, running_shop
from tests.sources import ROOT
from typer.core import TyperGroup

from payrelay.cli.main import commands

BLOCKS: Final = [block for page in pages() for block in blocks_of(page)]
SESSIONS: Final = sorted({block.page for block in BLOCKS if is_part_of_session(block)})
SYNTAX: Final = {"sh": ["bash", "-n"], "javascript": ["node", "--check"], "php": ["php", "-l"]}
DEMO_PROGRAMS: Final = ("bash", "curl", "node", "php")
OWN_PORTS: Final = ("9001", "9002", "9003")
SESSION_S: Final = 120
CHECK: Final = PAYRELAY.with_name("check-jsonschema")
SCHEMAS: Final = {"jobs": "vendor.github-workflows", "services": "vendor.compose-spec"}
"""By a member that no other file has."""
INVENTED_CUSTOMER: Final = "cus_019c8b2f5a7e4d10b6f3a92c7e08d154"
"""The customer of examples; in its place stands one that the demo has."""


@dataclass(frozen=True)
class Demo:
    """A demo in whose folder a reader types.

    Attributes:
        shop: the demo, with its shop.
        customer: the id of a stored customer with a card.
        ports: for programs of the reader's own, by those that the pages have.
        environment: of the reader's shell.
    """

    shop: Shop
    customer: str
    ports: dict[str, str]
    environment: dict[str, str]

    def filled_in(self, text: str, *, is_output: bool = False) -> str:
        """Puts what the reader's own demo printed in place of what the page has for everybody."""
        for name, own in (
            ("http://127.0.0.1:8080", self.shop.service),
            ("http://127.0.0.1:8090", self.shop.address),
            ("http://127.0.0.1:8600", self.shop.gateway),
            ("https://pay.example.com", self.shop.service),
            ("/backups/", f"{self.shop.folder}/backups/"),
            ("prk_…", self.shop.key),
            ("myshop://paid", f"{self.shop.address}/paid"),
            (INVENTED_CUSTOMER, self.customer),
            ("cus_…", self.customer),
            *self.ports.items(),
        ):
            # In what is promised, an ellipsis stands for anything.
            if not (is_output and name.endswith("…")):
                text = text.replace(name, own)
        return text


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo, and a shell beside it in which the packages of all clients are installed."""
    for program in DEMO_PROGRAMS:
        if shutil.which(program) is None:
            lacking(f"{program} isn't installed")
    folder = tmp_path_factory.mktemp("docs")
    for name in ("clients", "examples", "src"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(PAYRELAY.parents[1])
    (folder / "vendor").symlink_to(Path(autoloader(tmp_path_factory.mktemp("php"))["SHOP_AUTOLOAD"]).parent)
    package = folder / "node_modules" / "payrelay-client"
    package.mkdir(parents=True)
    (package / "package.json").symlink_to(ROOT / "clients" / "typescript" / "package.json")
    (package / "dist").symlink_to(ROOT / "examples" / "shop" / "page" / "payrelay")
    (folder / "backups").mkdir()
    (folder / ".curlrc").write_text("silent\nshow-error\nfail-with-body\nmax-time = 30\n")
    with running_shop(folder, "python/shop.py") as shop:
        address = f"{shop.service}/gateway/api"
        own = {"KEY": shop.key, "PAYRELAY_KEY": shop.key, "PAYRELAY": address, "CURL_HOME": str(folder)}
        own["PAYRELAY_CONFIG"] = str(folder / ".payrelay" / "payrelay.toml")
        environment = surroundings(own)
        environment["PATH"] = f"{PAYRELAY.parent}:{environment['PATH']}"
        card = {"customer_token": "D3A1" * 8, "reference": "reader"}
        answer = httpx.post(f"{address}/customers", json=card, headers={"Authorization": f"Bearer {shop.key}"})
        yield Demo(shop, answer.json()["data"]["id"], {port: str(free_port()) for port in OWN_PORTS}, environment)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.where)
def test_every_block_says_what_is_done_with_it(block: Block) -> None:
    """A block that nobody runs is wrong from the next change on, and its reader is the first to notice."""
    assert wrong(block) is None


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language in DATA and not block.is_skipped],
    ids=lambda block: block.where,
)
def test_data_can_be_read(block: Block) -> None:
    """Whoever copies settings or a body gets no message about a comma."""
    read: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}

    assert read[block.language](block.text)


@pytest.mark.story
@pytest.mark.parametrize(
    ("block", "schema"),
    [
        (block, schema)
        for block in BLOCKS
        for member, schema in SCHEMAS.items()
        if block.language == "yaml" and member in yaml.safe_load(block.text)
    ],
    ids=lambda each: each.where if isinstance(each, Block) else each,
)
def test_a_workflow_and_a_compose_file_fit_their_schemas(block: Block, schema: str, tmp_path: Path) -> None:
    """A misspelt member is ignored or refused only where the file is used."""
    file = tmp_path / "block.yaml"
    file.write_text(block.text)

    said_by(CHECK, "--builtin-schema", schema, file)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "sh"], ids=lambda block: block.where)
def test_commands_and_their_options_are_ours(block: Block) -> None:
    """A page that names an option of yesterday sends an operator, perhaps at night, into an error."""
    for arguments in commands_in(block.text):
        accept(arguments)


def accept(arguments: list[str]) -> None:
    """Lets the program's own parser read a call, without running it. Raises what the parser says."""
    command: Any = commands
    context, rest = None, arguments
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        context = typer.Context(command, parent=context, info_name=command.name)
        _, command, rest = command.resolve_command(context, rest)
    if set(rest).isdisjoint({"--help", "--version"}):
        try:
            command.make_context(command.name, [*rest], parent=context)
        except typer.BadParameter:
            # The value of a variable is known to the shell alone.
            if not any("$" in word for word in rest):
                raise


@pytest.mark.process
def test_parts_have_the_syntax_of_their_language(tmp_path: Path) -> None:
    """What is a part of something, or changes a machine, can't run here; a missing bracket shows all the same."""
    wrongs = []
    for block in BLOCKS:
        if block.mark != "check" or block.language not in RUNS:
            continue
        if block.language == "python":
            ast.parse(block.text)
            continue
        if shutil.which(SYNTAX[block.language][0]) is None:
            lacking(f"{SYNTAX[block.language][0]} isn't installed")
        file = tmp_path / f"block.{RUNS[block.language]}"
        opened = "<?php\n" if block.language == "php" and not block.text.startswith("<?php") else ""
        file.write_text(opened + block.text)
        read = subprocess.run([*SYNTAX[block.language], file], capture_output=True, text=True, check=False)
        if read.returncode != 0:
            wrongs.append(f"{block.where}\n{read.stdout}{read.stderr}")
    assert wrongs == [], "\n".join(wrongs)


@pytest.mark.integration
@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_reader_who_types_what_a_page_says_gets_what_it_says(page: Path, demo: Demo, tmp_path: Path) -> None:
    """From top to bottom in one terminal, beside one demo for all pages."""
    blocks = [
        replace(each, text=demo.filled_in(each.text, is_output=each.mark == "output")) for each in blocks_of(page)
    ]
    script = tmp_path / "session.sh"
    script.write_text(session(blocks, tmp_path))
    ran = subprocess.run(
        ["bash", script],
        cwd=demo.shop.folder,
        env=demo.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SESSION_S,
        check=False,
    )
    demo.shop.control("press/forget", {})
    outputs = printed(ran.stdout)
    assert ran.returncode == 0, f"{page}:{max(outputs, default=0)} ended with {ran.returncode}\n{ran.stdout}"
    before = 0
    for block in blocks:
        if block.mark == "output":
            assert missing(block.text, outputs[before]) == [], f"{block.where} isn't what came:\n{outputs[before]}"
        elif is_part_of_session(block):
            before = block.line


@pytest.mark.parametrize(
    ("fence", "expected"),
    [
        ("```sh\nls\n```", "it has no mark: run, file=NAME, check, or skip: REASON"),
        ("```sh walk\nls\n```", "'walk' is no mark"),
        ("```sh skip: why\nls\n```", "it doesn't say why it is skipped"),
        ("```\ncurl http://127.0.0.1:8080\n```", "it is a command without its language"),
        ("```kotlin check\nval a = 1\n```", "nothing here runs this language: say skip, and why"),
        ("```json run\n{}\n```", "data is read; it can't be run"),
        ("- item\n\n  ```sh run\n  ls\n  ```", None),
        ("```text output\nhello\n```", None),
        ("```kotlin skip: no compiler of it here\nval a = 1\n```", None),
    ],
)
def test_a_mark_that_says_nothing_is_found(fence: str, expected: str | None, tmp_path: Path) -> None:
    """A check that passes any block holds nothing."""
    page = tmp_path / "page.md"
    page.write_text(f"{fence}\n")

    (block,) = blocks_of(page)

    assert wrong(block) == expected


def test_commands_are_found_wherever_a_line_has_them() -> None:
    """Behind a variable, inside a substitution, in a loop and beside a pipe."""
    text = (
        "KEY=$(payrelay keys create --name shop)\nA=1 .venv/bin/payrelay check && ls | payrelay health\n"
        "for day in 1 2; do payrelay reconcile run --day $day > $day.txt; done  # payrelay no\n"
        "payrelay backup \\\n  /backups/today\n"
    )

    assert list(commands_in(text)) == [
        ["keys", "create", "--name", "shop"],
        ["check"],
        ["health"],
        ["reconcile", "run", "--day", "$day"],
        ["backup", "/backups/today"],
    ]


def test_a_wrong_option_is_found() -> None:
    """The parser is the program's own, so that it knows every option, and no other."""
    with pytest.raises(Exception, match="No such option"):
        accept(shlex.split("keys create --nam shop"))


@pytest.mark.parametrize(
    ("promised", "got", "lost"),
    [
        ("a …\nb", "x\na long\nb", []),
        ("b\na", "a\nb", ["a"]),
        ("paid …", "not paid 5", ["paid …"]),
    ],
)
def test_what_a_page_promises_must_come_in_its_order(promised: str, got: str, lost: list[str]) -> None:
    """A promise that any output fulfils is none."""
    assert missing(promised, got) == lost
