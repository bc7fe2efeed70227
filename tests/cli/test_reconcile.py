"""The commands of the reconciliation: a day from its file to the journal that Beancount checks."""

import json
from datetime import date
from pathlib import Path

import pytest
from beancount.scripts.check import main as bean_check
from click.testing import CliRunner
from tests.cli.commands import GATEWAY, Ran, Run

from payrelay.cli.terminal.messages import CommandError
from payrelay.reconciliation.commands.options import amount_of, days_of

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
    assert row == f"{DAY},no,day,LKR,payment,only_theirs,1,0.00,7.00,0.00,0.00,0,0,0,0"


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


def fed(books: Run, path: Path, content: bytes, *options: str) -> Ran:
    """Has a file with this content read."""
    path.write_bytes(content)
    return books("reconcile", "import", str(path), *(options or ("--profile", "payments")), "--by", "ann")


def test_words_that_the_profile_lacks_are_named_at_once(books: Run, tmp_path: Path) -> None:
    """Whoever reads a file with the wrong profile should hear of it before the comparison does."""
    content = (
        STATEMENT.replace("RECEIVED", "SETTLED").replace("0002,", "0003,").encode()
        + f"9,C-1,1.00,LKR,,{DAY}\n".encode()
    )
    told = fed(books, tmp_path / "b.csv", content)
    assert told.code == 0
    assert told.err.splitlines()[:2] == [
        "payrelay: b.csv: 1 lines have nothing as their state, which the profile doesn't know",
        'payrelay: b.csv: 1 lines have "SETTLED" as their state, which the profile doesn\'t know',
    ]
    shown = json.loads(books("reconcile", "run", "--day", DAY, "--json").out)
    words = {each["identity"]: (each["theirs"]["word"], each["why"].partition("; ")[2]) for each in shown["listed"]}
    assert words["320025000003"] == (
        "SETTLED",
        'the statement has it as "SETTLED", a word that the profile doesn\'t know',
    )
    assert words["9"] == ("", "the statement says no state of it")
    assert '("SETTLED")' in books("reconcile", "show", "--day", DAY).out


def test_a_row_with_a_mark_of_thousands_too_many_is_refused(books: Run, tmp_path: Path) -> None:
    """1,250.00 without quotes was read as 1.00 of another currency, or of another column."""
    told = fed(books, tmp_path / "b.csv", STATEMENT.replace("7.00", "1,250.00").encode())
    assert told.code == 1
    assert "b.csv: line 2: has 7 fields, and the header has 6" in told.err
    assert "no line; 0 new, 1 refused" in told.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), ""),
        (("--total", "1250.00"), ", and can't be compared with the sum that the statement says"),
        (("--count", "2"), ", and can't be compared with the number of lines that the statement says"),
        (
            ("--total", "0", "--count", "2"),
            ", and can't be compared with the sum and the number of lines that the statement says",
        ),
    ],
)
def test_a_total_that_wasnt_compared_is_named(books: Run, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    """Who gave a sum and reads nothing of it takes it for agreed. The day has its lines, and none was left out."""
    content = STATEMENT.replace("7.00", "1.250").encode()
    told = fed(books, tmp_path / "b.csv", content, "--profile", "payments", "--covers", DAY, *options)
    assert told.code != 0
    assert "b.csv: line 2: amount: must have at most 2 decimals" in told.err
    assert told.err.splitlines()[-1] == f"payrelay: refused lines: 1; so the files aren't complete{words}"


def test_a_mark_at_the_beginning_is_no_part_of_the_first_columns_name(books: Run, tmp_path: Path) -> None:
    """Spreadsheets write one, also where a profile says UTF-8 and no more."""
    profile = tmp_path / "p.toml"
    profile.write_text(
        'name="p"\nmovement="payment"\nencoding="utf8"\n'
        'columns={date="date",amount="amount",currency="currency",payment_id="payment_id"}\n'
    )
    assert fed(books, tmp_path / "b.csv", STATEMENT.encode("utf-8-sig"), "--profile", str(profile)).code == 0


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04rest", "a workbook such as .xlsx"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), "a workbook of the old kind, .xls"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"<html><table>", "a web page or XML"),
        (b"<!DOCTYPE html>", "a web page or XML"),
    ],
)
@pytest.mark.parametrize("name", ["day.csv", "day.xlsx", "day.xls"])
def test_what_is_no_csv_is_called_by_its_name(books: Run, tmp_path: Path, content: bytes, what: str, name: str) -> None:
    """Portals give workbooks, and an error about an encoding sends people the wrong way."""
    told = fed(books, tmp_path / name, content)
    assert (told.code, told.out) == (2, "")
    assert f"{name} is {what}" in told.err
    assert "save the table in it as CSV" in told.err


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ('timezone="Mars/Base"', "timezone: 'Mars/Base' is none"),
        ('timezone="Asia"', "timezone: 'Asia' is none"),
        ('date_format="%Y%Y"', "date_format: '%Y%Y' gives no day"),
        ('date_format="%Q"', "date_format: '%Q' gives no day"),
        ('encoding="no-such"', "encoding: 'no-such' is none that is known"),
        ('encoding="base64"', "encoding: 'base64' is none that is known"),
        ('encoding="a\\u0000b"', "is none that is known"),
        ('skipped=["Fee", "fee"]', "skipped has 'Fee', and skipped has 'fee'"),
    ],
)
def test_a_wrong_profile_is_one_line_that_names_its_member(
    books: Run, tmp_path: Path, member: str, reason: str
) -> None:
    """A traceback tells an accountant nothing."""
    profile = tmp_path / "p.toml"
    profile.write_text(
        'name="p"\nmovement="payment"\n'
        f'columns={{date="date",amount="amount",currency="currency",payment_id="payment_id"}}\n{member}\n'
    )
    told = fed(books, tmp_path / "b.csv", STATEMENT.encode(), "--profile", str(profile))
    assert told.code == 2
    assert reason in told.err
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("12,50", "1_0", "\uff11\uff12", "1e1", "-5.00", "(5.00)", "5.001", "", "1,2,3"),
        *("1,00,000.00", "12,34,500", "1.250", "5.000", "0.000"),
    ],
)
def test_a_total_that_isnt_understood_is_refused(text: str) -> None:
    """12,50 was taken for 1250.00, and a file that lacks lines may come to that. It is read as any typed amount."""
    with pytest.raises(CommandError, match=r"--total: .* is no amount such as .*: it must be written like 1250"):
        amount_of(text)


@pytest.mark.parametrize(
    ("text", "minor"), [("1,234,500.00", 123_450_000), ("0", 0), ("0.00", 0), ("5.5", 550), (" 7 ", 700)]
)
def test_a_total_is_read_as_it_stands_on_paper(text: str, minor: int) -> None:
    """Marks of thousands may be typed where they belong."""
    assert amount_of(text) == minor
