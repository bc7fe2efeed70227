import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import GATEWAY, Run, run_inside
from tests.databases import sqlite_url

from payrelay.clock import Clock
from payrelay.core.seal_keys import parse_keys
from payrelay.store import open_database
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.sealing import Seal

BEGIN = ("recover", "--yes", "--lost-since")


@pytest.mark.usefixtures("upgraded_database")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("recover", "--yes"), "give --lost-since"),
        (("recover", "--lost-since", "2999-01-01T00:00Z", "--yes"), "--lost-since is in the future"),
        (("recover", "--lost-since", "yesterday", "--yes"), "ISO 8601 with its zone"),
        (("recover", "acknowledge", "--principal", "nobody", "--yes"), "there is no principal 'nobody'"),
        (("recover", "decide", "send", "--reason", "x", "--yes"), "name operations by their ids"),
        (("recover", "decide", "send", "op_x", "--reason", "x", "--yes"), "not held, or not of this filter: op_x"),
        (("recover", "decide", "send", "--where", "kind=x", "--reason", "x", "--yes"), "kind= must be one of"),
        (("recover", "decide", "send", "--where", "age=x", "--reason", "x", "--yes"), "--where takes NAME=VALUE"),
        (("recover", "decide", "send", "--where", "since=x", "--reason", "x", "--yes"), "since= must be a time"),
        (("recover", "decide", "send", "--where", "kind=void", "--reason", "x", "--yes"), "no held operation"),
        (("recover", "checkout", "paid", "chk_x", "--reason", "x", "--yes"), "--payment-id belongs to paid"),
        (("recover", "checkout", "unpaid", "chk_x", "--payment-id", "1", "--reason", "x", "--yes"), "belongs to paid"),
        (("recover", "checkout", "unpaid", "chk_x", "--reason", "x", "--yes"), "there is no checkout chk_x"),
    ],
)
def test_what_can_not_be_done_is_one_line(run: Run, arguments: tuple[str, ...], line: str) -> None:
    """A mistyped time or filter must reach nothing."""
    ran = run(*arguments, **GATEWAY)

    assert (ran.code in {1, 2}, ran.out) == (True, "")
    assert line in ran.err


@pytest.mark.usefixtures("upgraded_database")
def test_a_database_that_lost_nothing_says_so(run: Run) -> None:
    """Also for programs."""
    ran = run("recover", "status", **GATEWAY)

    assert "incarnation 1" in ran.out
    assert "No commits are known to be lost.\nHeld: nothing.\n" in ran.out


@pytest.fixture
def copied_database(upgraded_database: Path) -> Path:
    """A database that is read in other tables than those in which its recovery began, as a restored dump is."""
    assert run_inside(upgraded_database.parent, GATEWAY, *BEGIN, "2026-01-01T00:00Z").code == 0
    seal = Seal(parse_keys(upgraded_database.with_name("payrelay.db.key").read_text().strip()))

    async def move() -> None:
        database = await open_database(sqlite_url(upgraded_database), clock=Clock(), owner=False)
        await IdentityStore(database, seal).change(
            lambda each: each.with_current(msgspec.structs.replace(each.current, place="elsewhere", began_at_ms=0))
        )
        await database.close()

    asyncio.run(move())
    return upgraded_database


@pytest.mark.usefixtures("copied_database")
def test_a_copy_whose_recovery_has_not_begun_says_so(run: Run, tmp_path: Path) -> None:
    """Its status is that of its origin. An operator who is told that nothing is lost begins no recovery."""
    file = tmp_path / "payments.csv"
    file.write_text(REPORT.format(date="2026-01-01T00:00:00Z"))
    status, told = run("recover", "status", **GATEWAY), run("recover", "status", "--json", **GATEWAY)
    fed = run("recover", "import-report", str(file), "--by", "ann", "--yes", **GATEWAY)

    assert "a copy was restored, or the database was moved" in status.out
    assert "The recovery is under way" not in status.out
    assert (json.loads(told.out)["ends_at"], fed.code) == (None, 1)
    assert "a copy was restored" in json.loads(told.out)["behind"]
    assert "no recovery is under way" in fed.err


@pytest.mark.usefixtures("copied_database")
def test_a_time_after_the_newest_entry_of_a_copy_is_told(run: Run) -> None:
    """What was charged in between would count as not lost, and a repeat of it would charge again."""
    late, early = run(*BEGIN, "2026-02-01T00:00Z", **GATEWAY), run(*BEGIN, "2025-12-01T00:00Z", **GATEWAY)

    assert (late.code, early.code) == (0, 0)
    assert "payrelay: the database is behind: its tables were made anew since" in late.err
    assert "tells of an earlier time" in late.err
    assert "tells of an earlier time" not in early.err


REPORT = """order_id,payment_id,amount,currency,status,date
B-1,320025000001,2510.00,LKR,RECEIVED,{date}
B-2,320025000002,100.00,LKR,REFUNDED,{date}
"""


@pytest.mark.usefixtures("upgraded_database")
def test_a_report_is_fed_in_and_shown(run: Run, tmp_path: Path) -> None:
    """What nothing here explains is named with its line, and ends with a code that a script notices."""
    file = tmp_path / "payments.csv"
    file.write_text(REPORT.format(date="2026-01-01T00:00:00Z"))
    early = run("recover", "import-report", str(file), "--yes", **GATEWAY)
    begun = run("recover", "--lost-since", "2025-12-31T00:00Z", "--yes", **GATEWAY)
    fed = run("recover", "import-report", str(file), "--by", "ann", "--yes", **GATEWAY)
    again = run("recover", "import-report", str(file), "--by", "ann", "--yes", "--json", **GATEWAY)
    status = run("recover", "status", **GATEWAY)

    assert (early.code, "no recovery is under way" in early.err, begun.code) == (1, True, 0)
    assert fed.code == 1
    assert fed.out.splitlines() == [
        "line 2: payment 320025000001 of order B-1: nobodys",
        "1 paid in the lost time, and of nothing here: a person must look.",
        "1 of nothing here, and given back.",
    ]
    told = json.loads(again.out)
    assert (told["is_known"], [each["verdict"] for each in told["payments"]]) == (True, ["nobodys", "given_back"])
    assert status.out.count("Report of gateway") == 1
    assert f"by ann, sha256:{told['digest']}: 1 given_back, 1 nobodys." in status.out


@pytest.mark.usefixtures("upgraded_database")
def test_a_report_with_a_wrong_line_is_not_fed_in(run: Run, tmp_path: Path) -> None:
    """Each wrong line is told with its number and field; the good lines beside it count for nothing."""
    file = tmp_path / "payments.csv"
    file.write_text(REPORT.format(date="2026-01-01T00:00:00Z") + "B-3,7,x,LKR,paid,2026-01-01\n")
    run("recover", "--lost-since", "2025-12-31T00:00Z", "--yes", **GATEWAY)
    ran = run("recover", "import-report", str(file), "--yes", **GATEWAY)
    missing = run("recover", "import-report", str(tmp_path / "none.csv"), "--yes", **GATEWAY)

    assert (ran.code, ran.out) == (2, "")
    assert "payments.csv: line 4: amount: must be written like 1250" in ran.err
    assert "payments.csv: line 4: status: must be one of" in ran.err
    assert "Report of" not in run("recover", "status", **GATEWAY).out
    assert (missing.code, "none.csv can't be read: No such file" in missing.err) == (2, True)
