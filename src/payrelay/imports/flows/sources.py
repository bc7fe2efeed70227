"""Opens what an import reads: a CSV file in Payrelay's own form, and the interface for readers of other forms."""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from payrelay.imports.rules.csv_rows import csv_rows
from payrelay.imports.rules.fields import IsMerchant
from payrelay.imports.rules.items import ImportUnreadableError, Item, NoItem
from payrelay.imports.rules.own_rows import item_of

HEAD_BYTES: Final = 65_536
"""Of a file, from which it is told what it is."""
LINE_LENGTH_MAX: Final = 100_000
"""Characters of one line of a CSV file."""
TIMES_IN: Final = "UTC"
"""The zone of times without one. A shop in another zone dates its payments later than they were made in Asia, so that
they count for longer as recent ones."""
_MARKS_16: Final = (b"\xff\xfe", b"\xfe\xff")


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is read, whatever its form.

    Attributes:
        name: names it without a password, for what is stored and told.
        items: gives all items, from the beginning, each time that it is called. Raises ImportUnreadableError, OSError.
    """

    name: str
    items: Callable[[], AsyncIterator[Item]]


def csv_source(path: Path, is_merchant: IsMerchant) -> ImportSource:
    """Opens a CSV file in Payrelay's own form.

    ``is_merchant`` tells whether a merchant's number is the account's.

    Raises ImportUnreadableError where the file has another form; OSError.
    """
    next(csv_rows(lines_of(path)), None)

    async def items() -> AsyncIterator[Item]:
        for row in csv_rows(lines_of(path)):
            yield row if isinstance(row, NoItem) else item_of(row, TIMES_IN, is_merchant)

    return ImportSource(name=file_name(path), items=items)


def file_name(path: Path) -> str:
    """Names a file with the SHA-256 of what is in it. Raises OSError."""
    with path.open("rb") as opened:
        return f"{path.name} (sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()[:16]})"


def lines_of(path: Path) -> Iterator[str]:
    """Gives the lines of a text. Raises ImportUnreadableError where it is none, or a line is too long; OSError."""
    require_text(path)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        number = 0
        while line := opened.readline(LINE_LENGTH_MAX):
            number += 1
            if len(line) == LINE_LENGTH_MAX:
                raise ImportUnreadableError(f"line {number} has more than {LINE_LENGTH_MAX} characters")
            yield line


def require_text(path: Path) -> None:
    """Raises ImportUnreadableError for a file that can't be UTF-8; OSError."""
    with path.open("rb") as opened:
        head = opened.read(HEAD_BYTES)
    if head.startswith(_MARKS_16) or b"\0" in head:
        raise ImportUnreadableError("the file isn't UTF-8: it has bytes of another encoding, or is no text")
