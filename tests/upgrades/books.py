"""The books of earlier versions, as they lie in ``books/``: a database, what was asked of it, and what was answered.

``<version>.db.gz`` is a SQLite database. ``<version>.json`` holds the key that it is sealed with, the keys of its
callers, the moment at which it was left, and the requests, each with the answer to its repeat at that moment.
"""

import gzip
from pathlib import Path
from typing import Final

import msgspec
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble

FOLDER: Final = Path(__file__).parent / "books"
VERSIONS: Final = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
EFFECTS: Final = {payhere.CHARGE, payhere.CAPTURE, payhere.REFUND, payhere.RETRY, payhere.CANCEL}
"""Where the gateway is asked to change something."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that was made, and what its repeat was answered when the books were left.

    Attributes:
        what: names it for people.
        method, target, headers, body: as it was sent.
        status, code, operation_id: of the answer to the repeat; None for what it doesn't name.
        answer: the body of that answer, where it is given again byte for byte.
    """

    what: str
    method: str
    target: str
    headers: dict[str, str]
    body: str = ""
    status: int = 0
    code: str | None = None
    operation_id: str | None = None
    answer: str | None = None


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout that was opened: the request, and what its repeat gave."""

    asked: Asked
    id: str
    state: str
    url: str | None
    form: dict[str, str] | None


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside the database.

    Attributes:
        version, commit: what made it.
        left_at_ms: when it was left.
        encryption_key: what it is sealed with.
        keys: the keys of its callers by principal, and the token of a phone.
        asked: every effect that was asked for.
        checkouts: every checkout that was opened.
        notifications: the bodies that were posted.
        customers: the stored customers' ids, by the gateway's tokens by which they are found.
        sealed: the columns that have sealed values.
        reads: what was read of the gateway, by path, each with the data that it gave.
    """

    version: str
    commit: str
    left_at_ms: int
    encryption_key: str
    keys: dict[str, str]
    asked: tuple[Asked, ...]
    checkouts: tuple[Checkout, ...]
    notifications: tuple[str, ...]
    customers: dict[str, str]
    sealed: tuple[str, ...]
    reads: dict[str, str]


def read_books(version: str) -> Books:
    """Reads what stands beside a database."""
    return msgspec.json.decode((FOLDER / f"{version}.json").read_bytes(), type=Books)


def copy_database(version: str, path: Path) -> None:
    """Writes a copy of a database to a file."""
    path.write_bytes(gzip.decompress((FOLDER / f"{version}.db.gz").read_bytes()))
    path.chmod(0o600)


def effects_at(gateway: GatewayDouble) -> int:
    """Counts the calls that change something at the gateway."""
    return sum(asked.path in EFFECTS for asked in gateway.asked)


def keep(books: Books, database: bytes) -> None:
    """Keeps books beside those of earlier versions; raises FileExistsError where a version has some already."""
    with (FOLDER / f"{books.version}.db.gz").open("xb") as file:
        file.write(gzip.compress(database, 9, mtime=0))
    text = msgspec.json.format(msgspec.json.encode(books), indent=1)
    (FOLDER / f"{books.version}.json").write_bytes(text + b"\n")
