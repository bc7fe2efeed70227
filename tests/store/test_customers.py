"""Stored customers: one for each token and principal, sealed, and changed together with their events."""

import asyncio

import msgspec
import pytest
from tests.digests import digests_of

from payrelay.core.customers.customer import (
    Approval,
    Customer,
    CustomerEvent,
    CustomerFilter,
    CustomerState,
    Names,
    approved,
    erased,
    removed,
    renamed,
)
from payrelay.core.secret import Secret
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.customers import Customers
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal

CHAIN_KEY = b"c" * 32
TOKEN = "CANARY59AFEE022CC69CA39D325E1B59"
APPROVAL = Approval(
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    reference="nimal@example.com",
    token=Secret(TOKEN),
    method="VISA",
    card_no_masked="************1292",
    card_expiry="0129",
    card_holder="CANARY PERERA",
    order_id="A-1",
    label="CANARY LABEL",
)
CUSTOMER = approved(APPROVAL, "cus_0001", at_ms=1_000)

EVENTS = query("SELECT type, subject FROM outbox ORDER BY seq")
COLUMNS = query("SELECT * FROM customers WHERE id = $1")
SEALED = query("SELECT sealed_token, sealed_holder, sealed_names FROM customers WHERE id = $1")
EXCHANGE = query(
    "UPDATE customers SET sealed_token = (SELECT o.sealed_token FROM customers AS o WHERE o.id = $2) WHERE id = $1",
)
FORCE = query("UPDATE customers SET state = $2 WHERE id = $1")


def _rows(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)


async def _read(database: Database, wanted: object, *parameters: Value) -> list[Row]:
    return await database.read(_rows(Statement(wanted, parameters)))  # type: ignore[arg-type]


@pytest.fixture
def customers(database: Database) -> Customers:
    """Gives the customers of an empty database."""
    return Customers(database, Seal((b"k" * 32,)), digests_of(database), chain_key=CHAIN_KEY)


def approval_of(number: int, **members: object) -> Approval:
    """Gives an approval with a token and a reference by its number, but for what is named."""
    own = {"token": Secret(f"TOKEN-{number}"), "reference": f"person-{number}", "order_id": f"A-{number}"}
    return msgspec.structs.replace(APPROVAL, **(own | members))


async def put(customers: Customers, number: int, **members: object) -> Customer:
    """Stores a customer by its number."""
    approval = approval_of(number, **members)
    customer = approved(approval, f"cus_{number:04}", at_ms=1_000)
    assert await customers.add(customer, approval)
    return customer


async def test_what_is_stored_is_read_back_whole(customers: Customers) -> None:
    """A restart knows nothing but this row."""
    assert await customers.add(CUSTOMER, APPROVAL)

    assert await customers.get("cus_0001") == CUSTOMER
    assert await customers.token_of("cus_0001") == Secret(TOKEN)
    assert await customers.of_token(CUSTOMER.merchant, "shop", Secret(TOKEN)) == CUSTOMER


async def test_what_is_unknown_is_none(customers: Customers) -> None:
    """Clients ask for ids that were never given."""
    assert await customers.get("cus_0009") is None
    assert await customers.token_of("cus_0009") is None
    assert await customers.of_token("m", "shop", Secret("t")) is None
    assert await customers.list(CustomerFilter(), before=None, limit=10) == []


async def test_nothing_secret_lies_in_clear(customers: Customers, database: Database) -> None:
    """Token, holder, card, reference and label: whoever reads the file learns none of them."""
    await customers.add(CUSTOMER, APPROVAL)

    [row] = await _read(database, COLUMNS, "cus_0001")
    told = repr([bytes(value) if isinstance(value, bytes) else value for value in row])
    assert "CANARY" not in told
    assert "nimal" not in told
    assert "1292" not in told
    assert await customers.get("cus_0001") == CUSTOMER


async def test_a_token_opens_in_its_own_row_only(customers: Customers, database: Database) -> None:
    """Whoever can write to the database must not charge one customer in the name of another."""
    await put(customers, 1)
    await put(customers, 2)
    await database.write(_rows(Statement(EXCHANGE, ("cus_0001", "cus_0002"))))

    with pytest.raises(StoreUnusable):
        await customers.token_of("cus_0001")


async def test_one_token_is_one_customer(customers: Customers) -> None:
    """Of many that bring the same approval at once, one makes the customer."""
    results = await asyncio.gather(
        *(customers.add(approved(APPROVAL, f"cus_{number:04}", at_ms=1_000), APPROVAL) for number in range(10))
    )

    assert results.count(True) == 1
    assert len(await customers.list(CustomerFilter(), before=None, limit=10)) == 1


@pytest.mark.parametrize("members", [{"principal": "other"}, {"merchant": "fedcba9876543210"}])
async def test_each_principal_and_merchant_has_its_own(customers: Customers, members: dict[str, str]) -> None:
    """Two shops of one merchant may be approved by the same card; neither may touch the other's."""
    first, second = await put(customers, 1), await put(customers, 2, token=Secret("TOKEN-1"), **members)

    assert await customers.of_token(first.merchant, first.principal, Secret("TOKEN-1")) == first
    assert await customers.of_token(second.merchant, second.principal, Secret("TOKEN-1")) == second


async def test_a_removed_customer_makes_room(customers: Customers) -> None:
    """The same card may be approved again, and is another customer then."""
    first = await put(customers, 1)
    await customers.change(removed(first, at_ms=2_000), CustomerEvent.REMOVED)
    second = await put(customers, 2, token=Secret("TOKEN-1"))

    assert await customers.of_token(first.merchant, "shop", Secret("TOKEN-1")) == second


@pytest.mark.parametrize(("end", "event"), [(removed, CustomerEvent.REMOVED), (erased, CustomerEvent.ERASED)])
async def test_the_token_is_destroyed(
    customers: Customers, database: Database, end: object, event: CustomerEvent
) -> None:
    """Not hidden: the sealed bytes are gone, the holder's too. A repeat of the approval still finds the row."""
    await customers.add(CUSTOMER, APPROVAL)
    gone = end(CUSTOMER, at_ms=2_000)  # type: ignore[operator]
    await customers.change(gone, event)

    [[token, holder, _]] = await _read(database, SEALED, "cus_0001")
    assert (token, holder) == (None, None)
    assert await customers.token_of("cus_0001") is None
    assert await customers.of_token(CUSTOMER.merchant, "shop", Secret(TOKEN)) == gone
    assert await customers.get("cus_0001") == gone


async def test_of_an_erased_customer_nothing_sealed_is_left(customers: Customers, database: Database) -> None:
    """What was sealed could still be opened by us."""
    await customers.add(CUSTOMER, APPROVAL)
    await customers.change(erased(CUSTOMER, at_ms=2_000), CustomerEvent.ERASED)

    assert list((await _read(database, SEALED, "cus_0001"))[0]) == [None, None, None]
    assert await customers.list(CustomerFilter(reference="nimal@example.com"), before=None, limit=2) == []


async def test_the_database_itself_keeps_no_token_of_a_removed_one(customers: Customers, database: Database) -> None:
    """A statement that forgets to destroy it must fail."""
    await customers.add(CUSTOMER, APPROVAL)

    with pytest.raises(Exception, match=r"(?i)check"):
        await database.write(_rows(Statement(FORCE, ("cus_0001", "removed"))))


async def test_a_change_is_stored_with_its_event(customers: Customers, database: Database) -> None:
    """An event without its change, or a change without its event, misleads its receiver."""
    await customers.add(CUSTOMER, APPROVAL)
    assert not await customers.add(approved(APPROVAL, "cus_0002", at_ms=1_000), APPROVAL)
    named = renamed(CUSTOMER, Names(reference="x", label=None), at_ms=2_000)
    await customers.change(named, CustomerEvent.CHANGED)
    with pytest.raises(Outdated):
        await customers.change(removed(CUSTOMER, at_ms=3_000), CustomerEvent.REMOVED)

    told = [tuple(row) for row in await _read(database, EVENTS)]
    assert told == [("customer.created", "customer:cus_0001"), ("customer.updated", "customer:cus_0001")]
    assert await customers.get("cus_0001") == named


async def test_a_change_keeps_what_it_does_not_name(customers: Customers, database: Database) -> None:
    """A new label leaves token and holder alone; a new holder takes the place of the one before."""
    await customers.add(CUSTOMER, APPROVAL)
    [before] = await _read(database, SEALED, "cus_0001")
    named = renamed(CUSTOMER, Names(reference=None, label="x"), at_ms=2_000)
    await customers.change(named, CustomerEvent.CHANGED)
    [after] = await _read(database, SEALED, "cus_0001")

    assert list(after)[:2] == list(before)[:2]
    await customers.change(msgspec.structs.replace(named, version=3), CustomerEvent.APPROVED, card_holder="Other")
    [last] = await _read(database, SEALED, "cus_0001")
    assert (last[0] == before[0], last[1] == before[1]) == (True, False)


async def test_pages_go_on_where_the_last_one_ended(customers: Customers) -> None:
    """Newest first, nothing twice and nothing left out."""
    stored = [await put(customers, number) for number in range(1, 6)]
    first = await customers.list(CustomerFilter(), before=None, limit=2)
    rest = await customers.list(CustomerFilter(), before=first[-1].id, limit=10)

    assert [*first, *rest] == stored[::-1]


async def test_each_filter_narrows(customers: Customers) -> None:
    """Each is compared with a column of its own; a reference with its hash."""
    first = await put(customers, 1)
    await put(customers, 2, account="second", principal="other", merchant="fedcba9876543210")
    await customers.change(removed((await customers.get("cus_0002")) or first, at_ms=2_000), CustomerEvent.REMOVED)

    for wanted in (
        CustomerFilter(merchant=first.merchant),
        CustomerFilter(principal="shop"),
        CustomerFilter(account="gateway"),
        CustomerFilter(id=first.id),
        CustomerFilter(reference="person-1"),
        CustomerFilter(state=CustomerState.ACTIVE),
    ):
        assert await customers.list(wanted, before=None, limit=10) == [first]


async def test_hashes_are_of_no_use_without_the_key(database: Database, customers: Customers) -> None:
    """A reference may be an e-mail address, which a plain hash would tell to whoever guesses it."""
    await customers.add(CUSTOMER, APPROVAL)
    other = Customers(database, Seal((b"k" * 32,)), digests_of(database), chain_key=b"d" * 32)

    assert await other.of_token(CUSTOMER.merchant, "shop", Secret(TOKEN)) is None
    assert await other.list(CustomerFilter(reference="nimal@example.com"), before=None, limit=2) == []
