"""Files that are opened for an import: those in Payrelay's own form, and a reason for any other."""

from hashlib import sha256
from pathlib import Path

import pytest

from payrelay.imports.flows.sources import csv_source
from payrelay.imports.rules.items import ImportUnreadableError


async def read(path: Path) -> list[str]:
    """Gives the kinds of the items of a file."""
    return [type(item).__name__ async for item in csv_source(path, lambda _: True).items()]


async def test_a_file_is_known_by_its_beginning_and_named_with_its_digest(tmp_path: Path) -> None:
    """Whatever it is called; and whoever reads the history later can tell whether it was this very file."""
    table = tmp_path / "c.txt"
    table.write_text("\ufeffpayment_id,order_id,amount,currency\n1,A,5,LKR\nx\n")

    assert await read(table) == ["PaymentItem", "NoItem"]
    assert csv_source(table, lambda _: True).name == f"c.txt (sha256:{sha256(table.read_bytes()).hexdigest()[:16]})"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("payment_id\n".encode("utf-16"), "isn't UTF-8"),
        (b"\0\0\0", "isn't UTF-8"),
        (b"-- MySQL dump 10.13\n", "no column that tells"),
        (b"CREATE TABLE x (id int, text varchar(9));", "no column that tells"),
        (b"id,order_id,payhere_amount,payhere_currency,status_code\n", "no column that tells"),
        (b"payment_id,amonut\n", "'amonut'"),
        (b"payment_id\n" + b"9" * 200_000, "line 2 has more than"),
    ],
)
def test_what_has_another_form_is_refused_before_anything_is_read(tmp_path: Path, content: bytes, why: str) -> None:
    """The reason is told where no other reader is there."""
    path = tmp_path / "file"
    path.write_bytes(content)

    with pytest.raises(ImportUnreadableError, match=why):
        csv_source(path, lambda _: True)
