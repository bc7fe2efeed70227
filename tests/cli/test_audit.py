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

from payrelay.app import opened_database, resources_of
from payrelay.cli.audit import ProgressBars
from payrelay.clock import Clock
from payrelay.core.calls import CancelSubscription
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, State
from payrelay.core.secret import Secret
from payrelay.flows.operators.audit import Phase
from payrelay.settings import Settings
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


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Gives a database with one operation in it, where the commands look for one."""
    path = tmp_path / "payrelay.db"
    settings = Settings(database_url=Secret(f"sqlite:///{path}"))
    async with opened_database(settings, Clock(), is_owner=True) as database:
        shared = await resources_of(settings, database, Clock(), may_upgrade=True)
        line = JournalEntry(version=1, at_ms=0, event=None, state=State.SENDING, evidence=Evidence())
        journal = Journal(database, shared.seal, chain_key=shared.chain.secret)
        await journal.accept(OPERATION, line, CancelSubscription(subscription_id=1), conflicts_with=None, now_ms=0)
    return path


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
    assert "1 operations with 1 journal entries, 0 anchors" in ran.out
    assert "1 journal entries are not anchored yet" in ran.out
    assert ran.out.endswith("Nothing was changed or removed.\n")


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


def test_what_is_from_before_the_chain_is_told(run: Run, file: Path) -> None:
    """Nobody is to believe that those lines were checked."""
    change(
        file,
        "DROP TRIGGER history_is_not_changed; UPDATE history SET hash = '', row_digest = '';"
        "UPDATE operations SET chain = ''",
    )
    ran = verify(run, file)

    assert ran.code == 0
    assert "1 journal entries are from before the chain.\n" in ran.out


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
