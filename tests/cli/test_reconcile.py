"""The commands of the reconciliation: a day from its file to the journal that Beancount checks."""

from datetime import date
from pathlib import Path

import pytest
from beancount.scripts.check import main as bean_check
from click.testing import CliRunner
from tests.cli.commands import GATEWAY, Ran, Run

from payrelay.cli.reconciliation.options import days_of
from payrelay.cli.terminal.messages import CommandError

DAY = "2020-01-02"
STATEMENT = f"""payment_id,order_id,amount,currency,status,date
320025000002,B-1,7.00,LKR,RECEIVED,{DAY} 03:43:30
"""


@pytest.fixture
def books(run: Run, tmp_path: Path) -> Run:
    """Gives commands beside books that have a statement with a payment that nobody here made."""

    def at_the_desk(*arguments: str) -> Ran:
        return run(*arguments, **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_ID="1210000")

    assert at_the_desk("keys", "create", "--name", "shop").code == 0
    file = tmp_path / "day.csv"
    file.write_text(STATEMENT)
    ran = at_the_desk(
        "reconcile", "import", str(file), "--profile", "payments", "--covers", DAY, "--count", "1", "--by", "ann"
    )
    assert ran.code == 0, ran.err
    return at_the_desk


def test_a_day_is_handed_in_as_a_journal(books: Run, tmp_path: Path) -> None:
    """The tool of the accountant takes it, and what is not agreed on stays visible in it."""
    assert books("reconcile", "run", "--day", DAY).code == 1
    early = books("reconcile", "export", "--days", DAY)
    assert (early.code, early.err) == (3, "payrelay: days that are not closed, and may change: 1\n")
    closing = ("reconcile", "close-day", "--day", DAY, "--reason", "month end", "--yes", "--by", "ann")
    assert books(*closing).code == 0
    exported = books("reconcile", "export", "--days", f"{DAY}..{DAY}")
    assert exported.code == 0, exported.err
    assert "; not booked: 1 payments, only theirs: ours 0.00, theirs 7.00 LKR" in exported.out
    assert books("reconcile", "export", "--days", DAY) == exported
    journal = tmp_path / "books.beancount"
    journal.write_text(exported.out)
    checked = CliRunner().invoke(bean_check, [str(journal)])
    assert (checked.exit_code, checked.output) == (0, "")


def test_a_day_is_written_as_a_table(books: Run) -> None:
    """A spreadsheet has a column for each number."""
    books("reconcile", "run", "--day", DAY)
    ran = books("reconcile", "export", "--days", DAY, "--format", "csv", "--continues")
    head, row = ran.out.splitlines()
    assert head.startswith("day,closed,part,currency,movement,verdict,count")
    assert row == f"{DAY},no,day,LKR,payment,only_theirs,1,0.00,7.00,0.00,0.00,0,0"


def test_a_difference_is_shown_and_closed(books: Run) -> None:
    """It keeps its name from the list to the command that closes it."""
    books("reconcile", "run", "--day", DAY)
    [name] = {word for word in books("reconcile", "show").out.split() if word.startswith("dif_")}
    assert books("reconcile", "close-difference", name, "--reason", "sold", "--by", "ann").code == 0
    assert books("reconcile", "show").out == "No difference.\n"
    assert "by ann" in books("reconcile", "show", "--day", DAY).out


def test_days_are_compared_shown_closed_and_written(books: Run) -> None:
    """An accountant closes a month, and thirty-one commands for it are thirty-one places for a mistake."""
    compared = books("reconcile", "run", "--days", "2020-01-01..2020-01-03")
    assert compared.code == 1, "one day has a difference"
    assert f"{DAY} is compared: 1 differences.\n2020-01-03 is compared: no differences.\n" in compared.err
    [row] = [line for line in compared.out.splitlines() if line.startswith(DAY)]
    assert row.split()[-4:] == ["1", "only", "theirs", "1"]
    assert books("reconcile", "show", "--days", "2020-01-01..2020-01-03").out == compared.out
    closing = ("reconcile", "close-day", "--days", "2020-01-01..2020-01-03", "--reason", "month end", "--yes")
    closed = books(*closing, "--by", "ann")
    assert (closed.code, len(closed.err.splitlines())) == (0, 3)
    assert f"{DAY} is closed, with 1 differences that it was closed with." in closed.err
    assert f"{DAY} was closed before." in books(*closing, "--by", "bob").err
    assert books("reconcile", "export", "--days", "2020-01-01..2020-01-03").code == 0
    again = books("reconcile", "close-day", "--day", DAY, "--reason", "twice", "--yes", "--by", "bob")
    assert (again.code, again.err) == (1, f"payrelay: {DAY} was closed by ann: month end\n")


def test_nothing_of_a_month_is_closed_where_a_day_is_missing(books: Run) -> None:
    """A month that is half closed and half open is the worst of both."""
    books("reconcile", "run", "--day", "2020-01-01")
    refused = books("reconcile", "close-day", "--days", "2020-01", "--reason", "month end", "--yes", "--by", "ann")
    assert refused.code == 1
    assert refused.err.startswith("payrelay: not compared yet, so that nothing is closed: 2020-01-02, 2020-01-03, ")
    assert "no day is closed yet" in books("reconcile", "show", "--days", "2020-01").out


def test_a_month_is_all_of_its_days() -> None:
    """Whoever types the last day of a month may take the wrong one."""
    assert days_of("2024-02") == (date(2024, 2, 1), date(2024, 2, 29))
    assert days_of("2026-11..2026-12") == (date(2026, 11, 1), date(2026, 12, 31))
    assert days_of(DAY) == (date(2020, 1, 2), date(2020, 1, 2))


@pytest.mark.parametrize(
    "days", ["2020-1", "2020-13", "20200102", "2020-02..2020-01", "2019-01..2020-12", "..", "9999-12-31", "0001-01-01"]
)
def test_days_that_cant_be_read_are_told(days: str) -> None:
    """A month that was read as another one would be closed for good."""
    with pytest.raises(CommandError):
        days_of(days)
