import asyncio
import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import PROGRAM, Ran, Run
from tests.samples import OPERATION

from payrelay.cli.session import session
from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Operation, State, advance
from payrelay.core.secret import Secret
from payrelay.flows.relay import Relay
from payrelay.settings import Settings

CHARGE = Charge(
    authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=100_000, customer_token="hush-hush"
)


async def _bring(relay: Relay, operation: Operation, event: Event) -> None:
    line = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=Evidence())
    await relay.journal.accept(operation, line, CHARGE, conflicts_with=None, now_ms=1_000)
    stored = await relay.journal.get(operation.id)
    assert stored is not None
    evidence = Evidence(cause="other_amount")
    changed, line = advance(stored, event, at_ms=2_000, retention=relay.settings.retention, evidence=evidence)
    await relay.journal.record(changed, line, None)


async def _seed(folder: Path) -> None:
    async with session(Settings(database_url=Secret(f"sqlite:///{folder}/payrelay.db"))) as relay:
        await _bring(relay, OPERATION, Event.DIFFERED)
        other = {"id": "op_2", "order_id": "A-2", "guard": "order/A-2", "claim": "key/k-2", "idempotency_key": "k-2"}
        await _bring(relay, msgspec.structs.replace(OPERATION, **other), Event.SUCCEEDED)


@pytest.fixture
def seeded(run: Run, upgraded_database: Path) -> Run:
    """Runs commands beside a database with an operation that needs a person, op_1, and one that is done, op_2."""
    asyncio.run(_seed(upgraded_database.parent))
    return run


def states(run: Run, *options: str) -> dict[str, str]:
    """Gives the states of the operations that are listed."""
    return {row["id"]: row["state"] for row in json.loads(run("operations", "list", "--json", *options).out)}


def test_the_list_is_for_people_and_for_programs(seeded: Run) -> None:
    """One command, two faces."""
    ran = seeded("operations", "list")

    assert ran.code == 0
    assert "Needs attention (1)" in ran.out
    assert states(seeded) == {"op_1": "needs_attention"}
    assert states(seeded, "--all") == {"op_1": "needs_attention", "op_2": "succeeded"}
    assert states(seeded, "--state", "succeeded") == {"op_2": "succeeded"}
    assert states(seeded, "--order", "A-2") == {"op_2": "succeeded"}  # an empty list would say that there was none
    assert states(seeded, "--account", "second", "--all") == {}


@pytest.mark.usefixtures("upgraded_database")
def test_an_empty_list_is_a_success(run: Run) -> None:
    """Nothing to do is what one hopes for."""
    assert (run("operations", "list").code, states(run)) == (0, {})


def test_one_operation_is_shown_with_what_a_decision_would_do(seeded: Run) -> None:
    """And with the commands to copy; one that is settled has none."""
    ran = seeded("operations", "show", "op_1")
    done = seeded("operations", "show", "op_2")

    assert (ran.code, done.code) == (0, 0)
    assert "payrelay operations decide op_1 failed --reason …" in ran.out
    assert "operations decide" not in done.out
    assert json.loads(seeded("operations", "show", "op_1", "--json").out)["decisions"].keys() == {"succeeded", "failed"}


@pytest.mark.parametrize("command", [("show", "op_\x1b9"), ("decide", "op_\x1b9", "failed", "--reason", "x", "--yes")])
def test_an_unknown_operation_is_one_line(seeded: Run, command: tuple[str, ...]) -> None:
    """With an exit code of its own, and without what was typed steering the terminal."""
    assert seeded("operations", *command) == Ran(2, "", "payrelay: there is no operation op_\\x1b9\n")


def test_a_decision_is_made_by_somebody_for_a_reason(seeded: Run) -> None:
    """Both stand in the history from then on, and what it says is what was done."""
    ran = seeded("operations", "decide", "op_1", "failed", "--reason", "no such payment", "--by", "ann", "--yes")
    history = json.loads(seeded("operations", "show", "op_1", "--json").out)["history"]

    assert ran == Ran(0, "", "Decided: op_1 failed. By ann: no such payment\n")
    assert history[-1]["seen"] == ["by ann", "because: “no such payment”"]
    assert states(seeded, "--order", "A-1", "--all") == {"op_1": "failed"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ("op_2", "failed", "--reason", "x"),
            1,
            "op_2 can't be decided any more: it was done",
        ),
        (("op_1", "failed", "--reason", "x", "--payment-id", "7"), 1, "a payment's number belongs only to"),
        (("op_1", "failed", "--reason", "x", "--payment-id", "x"), 2, "--payment-id must be 1 to 19 digits"),
        (("op_1", "failed", "--reason", " \n "), 2, "--reason must have 1 to 500 printable characters"),
        (("op_1", "failed"), 2, "--reason is missing"),
    ],
)
def test_what_can_not_be_decided_changes_nothing(
    seeded: Run, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """One line that says why."""
    ran = seeded("operations", "decide", *arguments, "--yes")

    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert words in ran.err
    assert states(seeded, "--all") == {"op_1": "needs_attention", "op_2": "succeeded"}


def test_without_a_terminal_nothing_is_decided_unless_it_is_said(seeded: Run) -> None:
    """A script that was copied from a page must not decide, for good, what nobody was asked about."""
    ran = seeded("operations", "decide", "op_1", "failed", "--reason", "x")

    assert ran == Ran(2, "", "payrelay: --yes is missing, and there is no terminal to ask on: nothing was decided\n")
    assert states(seeded) == {"op_1": "needs_attention"}


@pytest.mark.story
@pytest.mark.parametrize(
    ("typed", "options", "state"),
    [
        (b"y\n", (), State.SUCCEEDED),
        (b"n\n", (), State.NEEDS_ATTENTION),
        (b"\n", (), State.NEEDS_ATTENTION),
        (b"", ("--yes",), State.SUCCEEDED),
    ],
)
def test_on_a_terminal_it_asks(
    seeded: Run, tmp_path: Path, typed: bytes, options: tuple[str, ...], state: State
) -> None:
    """It shows what the decision does, and takes everything but a yes for a no."""
    terminal, inside = pty.openpty()
    os.write(terminal, typed)
    arguments = ("operations", "decide", "op_1", "succeeded", "--reason", "x", *options)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    ran = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=tmp_path,
        env=environment,
        stdin=inside,
        capture_output=True,
        check=False,
        timeout=30,
    )
    os.close(inside)
    os.close(terminal)

    assert ran.returncode == (0 if state is State.SUCCEEDED else 1), ran.stderr
    assert (b"The client gets 200" in ran.stderr) is not bool(options)
    assert states(seeded, "--order", "A-1", "--all") == {"op_1": state}


@pytest.mark.story
def test_ctrl_c_at_the_question_decides_nothing(seeded: Run, tmp_path: Path) -> None:
    """One press is enough: one line, and the exit code that a shell gives every program that ends so."""
    terminal, inside = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    with subprocess.Popen(
        [*PROGRAM, "operations", "decide", "op_1", "failed", "--reason", "x"],
        cwd=tmp_path,
        env=environment,
        stdin=inside,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stderr is not None
        text = b""
        while not text.endswith(b"[y/N]: "):
            text += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    os.close(inside)
    os.close(terminal)

    assert (process.returncode, said) == (130, b"\npayrelay: interrupted\n")
    assert states(seeded, "--order", "A-1", "--all") == {"op_1": "needs_attention"}
