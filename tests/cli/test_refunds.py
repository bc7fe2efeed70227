"""The command that refunds a payment: what it asks for before anything is sent. Its refunds are in the scenarios."""

from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Run

REFUND = ("payments", "refund", "320", "--reason", "sent back", "--yes")


@pytest.fixture
def folder(upgraded_database: Path) -> Path:
    """Gives the folder of an empty database."""
    return upgraded_database.parent


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (REFUND, 2, "there is no payment 320"),
        ((*REFUND[:2], "gateway~320", *REFUND[3:]), 2, "there is no payment gateway~320"),
        ((*REFUND[:2], "nobody~1", *REFUND[3:]), 2, "there is no payment nobody~1"),
        ((*REFUND, "--amount", "12,50"), 2, "--amount must be written like 1250, 1250.50 or 1,250.50"),
        ((*REFUND, "--description", " "), 2, "--description must have 1 to 200 printable characters"),
        (("payments", "refund", "320", "--yes"), 2, "--reason is missing"),
        (REFUND[:-1], 2, "--yes is missing, and there is no terminal to ask on: nothing was refunded"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_missing_or_wrong_is_said(run: Run, arguments: tuple[str, ...], code: int, words: str) -> None:
    """Before the gateway is asked anything."""
    ran = run(*arguments, **GATEWAY)
    assert (ran.code, words in ran.err) == (code, True), ran.err
