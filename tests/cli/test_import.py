"""`payrelay import` as it is typed: told first, confirmed, and each refused line by its place."""

import csv
from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Ran, Run
from tests.laravel_shop import APP_KEY_TEXT, encrypted, payment, write_sqlite

PAYMENTS = "payment_id,order_id,amount,currency\n320025000001,A-1,5,LKR\nx,A-2,5,LKR\n"
CARDS = "customer_token,reference\n59AFEE022CC69CA39D325E1B59130862,=person-7\n"


@pytest.fixture
def shop(run: Run, tmp_path: Path) -> Path:
    """Gives a folder with a database, in which a principal has a key, and files to import."""
    assert run("keys", "create", "--name", "shop", **GATEWAY).code == 0
    (tmp_path / "payments.csv").write_text(PAYMENTS)
    (tmp_path / "cards.csv").write_text(CARDS)
    return tmp_path


def imported(run: Run, *arguments: str) -> Ran:
    """Imports for the principal `shop`."""
    return run("import", *arguments, "--principal", "shop", **GATEWAY)


def test_a_dry_run_tells_everything_and_stores_nothing(run: Run, shop: Path) -> None:
    """Whoever looks first changes nothing by looking."""
    looked = imported(run, f"{shop}/payments.csv", "--dry-run", "--report", f"{shop}/report.csv")

    assert (looked.code, looked.out) == (1, "To be imported for shop: 1 payment.\nRefused: 1 line.\n")
    assert "line 3: payment_id is no number of the gateway's" in looked.err
    assert "line 3,,refused,payment_id is no number" in (shop / "report.csv").read_text()
    assert "no such payment" in run("payments", "list", **GATEWAY).out


def test_without_a_terminal_it_needs_to_be_sure(run: Run, shop: Path) -> None:
    """A script that forgot --yes must not have imported half of it."""
    asked = imported(run, f"{shop}/payments.csv")

    assert asked.code == 2
    assert "nothing was imported" in asked.err


def test_the_report_names_each_cards_customer(run: Run, shop: Path) -> None:
    """The shop finds its own people by it; a spreadsheet takes no reference for a formula."""
    assert imported(run, f"{shop}/cards.csv", "--yes", "--report", f"{shop}/report.csv").code == 0

    [row] = csv.DictReader((shop / "report.csv").read_text().splitlines())
    assert (row["reference"], row["verdict"]) == ("'=person-7", "new")
    assert row["customer"] in run("customers", "list", **GATEWAY).out
    again = imported(run, f"{shop}/cards.csv", "--yes")
    assert again.out == "Here already: 1 card.\n"
    assert "59AFEE" not in again.out + again.err + (shop / "report.csv").read_text()


def test_nothing_that_a_file_tells_of_a_card_is_dropped_without_a_word(run: Run, shop: Path) -> None:
    """A spreadsheet takes the zero from a month; what can't be read at all is refused with its line, to be mended."""
    (shop / "cards.csv").write_text(
        "customer_token,reference,card_no,card_expiry\n"
        f"{'A' * 32},one,************1292,1/29\n{'B' * 32},two,************1292,Jan-29\n"
    )
    ran = imported(run, f"{shop}/cards.csv", "--yes", "--report", f"{shop}/report.csv")
    one, two = csv.DictReader((shop / "report.csv").read_text().splitlines())

    assert ran.code == 1
    assert one["verdict"] == "new"
    assert '"card_expiry": "0129"' in run("customers", "show", one["customer"], "--json", **GATEWAY).out
    assert (two["place"], two["verdict"]) == ("line 3", "refused")
    assert two["reason"] == 'card_expiry must be a month and a year, such as "0129" or "01/29"'


def test_encrypted_columns_need_the_shops_key(run: Run, shop: Path) -> None:
    """The sentence says which option opens them."""
    write_sqlite(shop / "shop.sqlite", [encrypted(payment(1))])
    (shop / ".env").write_text(f"APP_KEY={APP_KEY_TEXT}\n")
    without = imported(run, f"{shop}/shop.sqlite", "--dry-run")
    opened = imported(run, f"{shop}/shop.sqlite", "--app-key-file", f"{shop}/.env", "--yes")

    assert "give --app-key-file" in without.err
    assert opened.out == "Imported for shop: 1 payment.\n"
    assert "SIGNS_ELSEWHERE" in opened.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere.csv", "--principal", "shop"), "No such file or directory"),
        (("payments.csv", "--principal", "nobody"), "no key of the principal nobody"),
        (("payments.csv", "--principal", "shop", "--account", "x"), "--account must be one of gateway"),
        (("payments.csv", "--principal", "shop", "--app-key-file", "cards.csv"), "--app-key-file: cards.csv has an"),
        (("payrelay.db", "--principal", "shop"), "no table of laravel-payhere"),
        (("postgresql://u:hunter2@127.0.0.1:9/x", "--principal", "shop"), "the database: the database can't be opened"),
    ],
)
def test_what_cannot_begin_says_why(run: Run, shop: Path, arguments: tuple[str, ...], sentence: str) -> None:
    """In one line, and without a password."""
    assert shop.exists()
    ran = run("import", *arguments, "--yes", **GATEWAY)

    assert ran.code == 2
    assert sentence in ran.err
    assert "hunter2" not in ran.err
