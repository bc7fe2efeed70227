# ruff: noqa: S608 - what is put into the texts are our own words

import asyncio
import io
import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from rich.progress import Progress
from tests import samples
from tests.cli.commands import Ran, Run

from payrelay.app import opened_database, resources_of, seal_of
from payrelay.cli.audit import ProgressBars
from payrelay.cli.terminal.messages import FAULTY
from payrelay.clock import Clock
from payrelay.core.calls import CancelSubscription
from payrelay.core.database.schema_changes import ANY
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, State
from payrelay.core.secret import Secret
from payrelay.flows.audit.audit import Phase
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.settings import Settings
from payrelay.store.database.identity import IdentityStore
from payrelay.store.payments.journal import Journal

OPERATION = msgspec.structs.replace(
    samples.OPERATION,
    merchant="m",
    kind=Kind.CANCEL,
    subject="subscription/1",
    guard="subscription/1",
    claim=None,
    idempotency_key=None,
    fingerprint="0" * 64,
    order_id=None,
    subscription_id="1",
    amount_minor=None,
    currency=None,
    created_at_ms=0,
    updated_at_ms=0,
    send_by_ms=0,
)


async def fill(path: Path, at_ms: int) -> Path:
    """Makes a database with one operation in it, which was accepted at that time."""
    settings = Settings(database_url=Secret(f"sqlite:///{path}"))
    async with opened_database(settings, Clock(), is_owner=True, changes=ANY) as database:
        shared = await resources_of(settings, database, Clock(), changes=ANY)
        line = JournalEntry(version=1, at_ms=at_ms, event=None, state=State.SENDING, evidence=Evidence())
        journal = Journal(database, shared.seal, shared.rows, chain_key=shared.chain.secret)
        await journal.accept(OPERATION, line, CancelSubscription(subscription_id=1), conflicts_with=None, now_ms=at_ms)
    return path


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Gives a database with one operation of just now, where the commands look for one."""
    return await fill(tmp_path / "payrelay.db", Clock().now_ms())


@pytest.fixture
async def old_file(tmp_path: Path) -> Path:
    """Gives a database with one operation of long ago, which should be anchored."""
    return await fill(tmp_path / "payrelay.db", 0)


def verify(run: Run, file: Path, *options: str) -> Ran:
    """Runs the command on that database."""
    return run("audit", "verify", *options, PAYRELAY_DATABASE_URL=f"sqlite:///{file}")


def change(file: Path, sql: str) -> None:
    """Changes a database behind the program's back."""
    connection = sqlite3.connect(file)
    connection.executescript(sql)
    connection.close()


def test_a_database_that_nobody_touched_is_right(run: Run, file: Path) -> None:
    """Exit code 0, and what was looked at, so that an empty database is not mistaken for a right one."""
    ran = verify(run, file)

    assert (ran.code, ran.err) == (0, "")
    assert "1 operations with 1 journal entries, 0 anchors, 0 other rows" in ran.out
    assert "1 journal entries are not anchored yet" in ran.out
    assert ran.out.endswith("Verified: nothing was changed or removed.\n")


def test_what_should_be_anchored_and_is_not_is_no_clean_bill(run: Run, old_file: Path) -> None:
    """Without an anchor nobody can say that nothing was removed: exit code 3, and not that of a clean bill."""
    ran = verify(run, old_file)

    assert ran.code == 3
    assert "1 journal entries should be anchored by now, and are not" in ran.out
    assert ran.out.endswith("Not verified: nothing wrong was found, but not everything is covered.\n")
    assert json.loads(verify(run, old_file, "--json").out)["summary"]["is_verified"] is False


def test_a_row_that_was_written_by_hand_is_named(run: Run, file: Path) -> None:
    """By its table and id, as the alert about it names it."""
    change(
        file,
        "INSERT INTO credentials (id, principal, key_hash, scopes, created_at_ms) VALUES ('k1', 'p', x'00', '[]', 1)",
    )
    ran = verify(run, file)

    assert ran.code == 1
    assert ran.out.startswith("credentials/k1: its digest is missing or wrong")
    assert [each["row"] for each in json.loads(verify(run, file, "--json").out)["findings"]] == ["credentials/k1"]


def test_the_newest_anchor_is_printed_to_be_kept_elsewhere(run: Run, file: Path) -> None:
    """With its time, in one line; where there is none yet, exit code 2 and nothing that looks like one."""
    variables = {"PAYRELAY_DATABASE_URL": f"sqlite:///{file}"}
    none = run("audit", "anchor", **variables)
    change(file, f"INSERT INTO anchors VALUES (1, 0, 5000, 2, '{'a' * 64}', 9)")

    assert (none.code, none.out) == (2, "")
    assert run("audit", "anchor", **variables).out == f"1970-01-01T00:00:05Z 1:{'a' * 64}\n"


def test_anchors_that_a_file_has_must_be_there(run: Run, file: Path, tmp_path: Path) -> None:
    """The file is what a running service adds a line to each day, and what an operator appends to."""
    noted = tmp_path / "anchors.txt"
    noted.write_text(f"2026-01-01T00:00:00Z 1:{'0' * 64}\n\n2:{'1' * 64}\n")
    ran = verify(run, file, "--anchors", str(noted))

    assert ran.code == 1
    assert ran.out.startswith("anchor 1: it was noted, and is gone\nanchor 2: it was noted, and is gone\n")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no anchor\n", "doesn't end with an anchor"),
        (f"1:{'0' * 64}\n1:{'1' * 64}\n", "two different anchors"),
        (None, "can't be read"),
    ],
)
def test_a_file_without_anchors_is_refused(run: Run, file: Path, tmp_path: Path, text: str | None, fault: str) -> None:
    """Whoever names the wrong file must not believe that anything was compared."""
    noted = tmp_path / "anchors.txt"
    if text is not None:
        noted.write_text(text)
    ran = verify(run, file, "--anchors", str(noted))

    assert (ran.code, ran.out) == (2, "")
    assert fault in ran.err


def test_what_was_changed_is_named(run: Run, file: Path) -> None:
    """One line a finding: the operation, the line of its history, and what is wrong; exit code 1."""
    change(file, "UPDATE operations SET order_id = 'forged'")
    ran = verify(run, file)

    assert ran.code == 1
    assert ran.out.startswith("op_1: entry 1: the operation is not as this entry, its newest, left it\n")
    assert ran.out.endswith("1 findings.\n")


def test_programs_get_json(run: Run, file: Path) -> None:
    """A monitor wants the same as data."""
    change(file, "UPDATE operations SET state = 'failed'")
    ran = verify(run, file, "--json")
    told = json.loads(ran.out)

    assert ran.code == 1
    assert [(each["operation_id"], each["version"], each["anchor"]) for each in told["findings"]] == [("op_1", 1, None)]
    assert (told["summary"]["operations"], told["summary"]["findings"]) == (1, 1)
    assert told["summary"]["chain_since"].endswith("Z")
    assert (told["summary"]["anchored_until"], told["summary"]["newest_anchor"]) == (None, None)


def test_a_forged_text_does_not_reach_the_terminal_raw(run: Run, file: Path) -> None:
    """Whoever changed a row may have written into it what a terminal obeys, such as to erase the line."""
    change(file, "PRAGMA foreign_keys = OFF; UPDATE operations SET id = char(27) || '[2K' || char(10)")
    ran = verify(run, file)

    assert "\x1b" not in ran.out
    assert "\\x1b[2K\\n: its history is gone\n" in ran.out


def test_a_key_that_is_gone_stops_it_before_it_begins(run: Run, file: Path) -> None:
    """Without the key of the chain nothing can be said, least of all that all is right: exit code 2."""
    change(file, "DELETE FROM meta WHERE name = 'chain_key'")
    ran = verify(run, file)

    assert (ran.code, ran.out) == (2, "")
    assert "the key of the audit chain is missing" in ran.err


def test_an_anchor_is_named_by_its_number(run: Run, file: Path) -> None:
    """And the newest one that there is is told, to be compared with what was noted of it elsewhere."""
    change(file, "INSERT INTO anchors VALUES (1, 0, 5, 2, 'digest', 9)")
    ran = verify(run, file)

    assert json.loads(verify(run, file, "--json").out)["summary"]["anchored_until"] == "1970-01-01T00:00:00Z"
    assert "anchor 1: it was changed, or journal entries between 1970-01-01T00:00:00Z and " in ran.out
    assert "The newest anchor, up to 1970-01-01T00:00:00Z, is 1:digest.\n" in ran.out


def test_a_noted_anchor_must_be_there(run: Run, file: Path) -> None:
    """The newest anchor can be removed together with what it covers; only who noted it elsewhere can tell."""
    digest = "0" * 64
    ran = verify(run, file, "--anchor", f"1:{digest}", "--anchor", f"2:{digest}")

    assert ran.code == 1
    assert ran.out.startswith("anchor 1: it was noted, and is gone\nanchor 2: it was noted, and is gone\n")


@pytest.mark.parametrize("noted", ["", "1", "1:", "1:0", f"-1:{'0' * 64}", f"x:{'0' * 64}"])
def test_a_mistyped_anchor_is_refused(run: Run, file: Path, noted: str) -> None:
    """Whoever mistypes it must not believe that it was compared."""
    ran = verify(run, file, f"--anchor={noted}")

    assert (ran.code, ran.out) == (2, "")
    assert "--anchor takes a number" in ran.err


def test_a_person_sees_how_far_it_is() -> None:
    """Years of operations take minutes."""
    screen = io.StringIO()
    with Progress(console=Console(file=screen, force_terminal=True, width=80)) as bar:
        bars = ProgressBars(bar)
        bars(Phase.ANCHORS, 1, 1)
        bars(Phase.OPERATIONS, 1, 2)
        bars(Phase.OPERATIONS, 2, 2)

    assert "anchors" in screen.getvalue()
    assert "100%" in screen.getvalue()


async def test_a_lost_window_is_told_with_who_began_it_and_explains_noted_anchors(run: Run, file: Path) -> None:
    """Anchors from the lost hours can't be here; hiding that would hide what somebody removed under that pretext."""
    settings = Settings(database_url=Secret(f"sqlite:///{file}"))
    since_ms = Clock().now_ms() - 3_600_000
    async with opened_database(settings, Clock()) as database:
        identities = IdentityStore(database, await seal_of(settings, database))
        await begin_recovery(identities, Clock(), lost_since_ms=since_ms, operator="dana", note="disk died")
    ran = await asyncio.to_thread(verify, run, file, "--anchor", f"1:{'0' * 64}", "--anchor", f"99:{'0' * 64}")

    assert ran.code == FAULTY
    assert "anchor 99: it was noted, and is gone\n" in ran.out
    assert "anchor 1:" not in ran.out
    assert "Incarnation 2 began at" in ran.out
    assert ", by dana, because “disk died”: what was stored from" in ran.out
    assert "1 noted anchors are not here as they were noted, and may be among what is lost: 1.\n" in ran.out
    shown = json.loads((await asyncio.to_thread(verify, run, file, "--json", "--anchor", f"1:{'0' * 64}")).out)
    assert (shown["summary"]["is_verified"], shown["summary"]["anchors_lost"]) == (False, [1])
    [gap] = shown["summary"]["lost_windows"]
    assert (gap["incarnation"], gap["operator"], gap["note"]) == (2, "dana", "disk died")


def test_what_needs_no_explanation_gets_none(run: Run, file: Path) -> None:
    """An explanation that nobody needs would stand in every later audit."""
    typed = ("audit", "explain", "--from", "2026-11-21T10:00Z", "--until", "2026-11-21T11:00Z", "--reason", "slow")
    ran = run(*typed, PAYRELAY_DATABASE_URL=f"sqlite:///{file}")
    assert (ran.code, ran.err) == (2, "payrelay: no anchor needs an explanation\n")


def test_an_explanation_says_when(run: Run, file: Path) -> None:
    """Without a time, the wrong anchor might be explained."""
    ran = run("audit", "explain", "--reason", "slow", PAYRELAY_DATABASE_URL=f"sqlite:///{file}")
    assert (ran.code, "--from takes a time with its zone" in ran.err) == (2, True)
