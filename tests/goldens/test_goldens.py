"""What is stored and hashed comes out as it always did, value by value.

Each test says what breaks for those who upgrade if a value changes. None of the values is to be changed: where one
differs, the code that made it differ is the mistake. Values may be added.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.goldens import goldens
from tests.goldens.goldens import ANSWER, CALLS, SEAL_KEY
from tests.store.test_customers import APPROVAL, CUSTOMER

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.payments.idempotency import fingerprint_of
from payrelay.store import open_database
from payrelay.store.customers import Customers
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal

GOLDENS: Final[dict[str, Any]] = msgspec.json.decode(Path(__file__).with_name("goldens.json").read_bytes())
IN_THE_CLEAR: Final = query("SELECT token_hash, reference_hash FROM customers")
RANDOM: Final = {"meta.value/chain_key", "meta.value/client_token_keys"}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Gives an empty store."""
    database = await open_database(f"sqlite:///{tmp_path / 'payrelay.db'}", clock=Clock(), owner=True)
    yield database
    await database.close()


@pytest.mark.parametrize("name", CALLS)
def test_fingerprints(name: str) -> None:
    """A repeat is no repeat any more: with a key it is refused, and without one it is charged a second time."""
    assert fingerprint_of("gateway", CALLS[name]) == GOLDENS["fingerprints"][name]


def test_hashes_and_names() -> None:
    """Rows are found by them, and not found any more otherwise.

    A claim: the repeat is done again. The hash of a token, and the lock that has it: a hold is captured a second time.
    A phone's key: the same. An API key, a checkout's secret: nobody gets in, and customers stand before a closed page.
    An event: it is told again under another id. A merchant: what holds its orders holds them no more, and its
    notifications come a second time. An access token: the gateway is asked for another one.
    """
    assert goldens.hashes() == GOLDENS["hashes"]


def test_names_of_persons() -> None:
    """An app's repeat after an upgrade is a second payment otherwise, and who it was can't be told from the log."""
    assert goldens.person_names() == GOLDENS["person_names"]


def test_the_audit_chain() -> None:
    """The audit calls every row from before the upgrade tampered with, with a stored customer and without."""
    assert goldens.chain_hashes() == GOLDENS["chain"]


@pytest.mark.parametrize("name", CALLS)
def test_stored_calls(name: str) -> None:
    """What was lost before the upgrade can't be settled after it: nobody knows what was asked."""
    assert msgspec.msgpack.decode(bytes.fromhex(GOLDENS["stored_calls"][name]), type=Effect) == CALLS[name]


def test_a_stored_answer() -> None:
    """A repeat gets no answer, or another one than before."""
    assert msgspec.msgpack.decode(bytes.fromhex(GOLDENS["stored_answer"]), type=Answer) == ANSWER


def test_a_sealed_value() -> None:
    """Nothing that is sealed opens any more: no call, no answer, no customer's token."""
    seal = Seal((SEAL_KEY,))

    assert seal.key_id.hex() == GOLDENS["key_id"]
    assert seal.open(bytes.fromhex(GOLDENS["sealed_value"]), b"op_1/call") == b"plain"


def test_the_places_of_sealed_values() -> None:
    """A value that is bound to another place than it was sealed for does not open."""
    places = goldens.sealed_places()

    assert {name: places.get(name) for name in GOLDENS["sealed_places"]} == GOLDENS["sealed_places"]


async def test_what_lies_in_sealed_values(database: Database) -> None:
    """What an earlier version has sealed there is read in vain, or read as something else.

    A member may be added behind the others; where it is absent, an earlier version must find what it knows.
    """
    opened = goldens.opened_rows(await goldens.sealed_rows(database))
    found = {f"{column}/{row}": plain for column, rows in opened.items() for row, plain in rows.items()}
    known = {name: plain for name, plain in found.items() if name not in RANDOM}

    for name, plain in GOLDENS["sealed"].items():
        assert holds(known[name], bytes.fromhex(plain)), name


def holds(plain: bytes, golden: bytes) -> bool:
    """Tells whether a value has all that a golden one has; what is absent there may be left out."""
    if plain == golden:
        return True
    now, then = msgspec.msgpack.decode(plain), msgspec.msgpack.decode(golden)
    if isinstance(then, dict):
        return isinstance(now, dict) and all(now.get(name) == value for name, value in then.items())
    return isinstance(then, list) and now[: len(then)] == then


async def test_the_keyed_hashes_of_customers(database: Database) -> None:
    """A second approval of the same card makes another customer, and a person isn't found by the shop's own name."""
    await Customers(database, Seal((SEAL_KEY,)), digests_of(database), chain_key=b"c" * 32).add(CUSTOMER, APPROVAL)

    assert await database.read(all_rows(Statement(IN_THE_CLEAR, ()))) == [tuple(GOLDENS["customer_hashes"])]
