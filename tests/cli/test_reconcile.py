"""The commands of the reconciliation: a day from its file to the journal that Beancount checks."""

from pathlib import Path

import pytest
from beancount.scripts.check import main as bean_check
from click.testing import CliRunner
from tests.cli.commands import GATEWAY, Ran, Run

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
