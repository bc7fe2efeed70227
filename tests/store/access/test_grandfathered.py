"""What migration 14 finds in a database of before: each way of acting on another principal's things, on each engine."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import NOTIFICATION
from tests.store.access.test_owners import MERCHANT, PAYMENT_ID, PLAN_ID, Shelf
from tests.store.conftest import Book
from tests.store.test_row_digests import KEY
from tests.store.test_subscriptions import paid

from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.operation import WITHOUT_EFFECT, Kind, State
from payrelay.core.secret import secret_hash
from payrelay.store.access.credentials import Credentials
from payrelay.store.access.principals import Principals
from payrelay.store.digests.rows import GRANDFATHERED
from payrelay.store.engine.database import Statement, Unit, all_rows
from payrelay.store.engine.migrations import shipped
from payrelay.store.engine.queries import query
from payrelay.store.statements.access.principals import ADD_ACTED, ADD_UNSEEN, FORGET_UNSEEN
from payrelay.store.subscriptions import SubscriptionOwner

TOKEN_HASH: Final = secret_hash("token")
OTHER: Final = {"principal": "kiosk", "order_id": "B-1"}
SCOPES: Final = frozenset({Scope.PAYMENTS_REFUND})
Deed = Callable[[Shelf], Awaitable[object]]


def _run(text: str) -> Unit[None]:
    yield Statement(query(text), ())


async def found(shelf: Shelf, engine: str) -> list[tuple[str, str]]:
    """Does what the migration does with a database that isn't empty; gives who acted on whose things."""
    dialect = "postgresql" if engine == "postgresql" else "sqlite"
    [text] = [migration.text for migration in shipped(dialect) if migration.number == 14]
    for part in text.split(";"):
        if "INSERT INTO grandfathered" in part:
            await shelf.book.database.write(_run(part))
    digests = digests_of(shelf.book.database)
    await shelf.book.database.write(digests.add_missing(GRANDFATHERED))
    pairs = await Principals(shelf.book.database, digests).grandfathered()
    return [(each.principal, each.owner) for each in pairs if each.reason == "acted"]


@pytest.fixture
def shelf(book: Book) -> Shelf:
    """Gives an empty database."""
    return Shelf(book)


async def plan_of_shop(shelf: Shelf) -> None:
    """The shop has a plan, of which an installment was paid."""
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    await shelf.subscriptions.note(owner, [paid(1)], now_ms=1_000)


async def hosted_authorization(shelf: Shelf) -> None:
    """A customer authorized an amount in a checkout of the shop's."""
    await shelf.checkout(kind=CheckoutKind.AUTHORIZATION, state=CheckoutState.COMPLETED)
    await shelf.inbox.accept_token(NOTIFICATION, NotificationKind.AUTHORIZATION, "token", at_ms=1_000)


MADE: Final[dict[str, Deed]] = {
    "a charge": lambda shelf: shelf.operation(payment_id=PAYMENT_ID),
    "a checkout": lambda shelf: shelf.checkout(state=CheckoutState.COMPLETED, payment_id=PAYMENT_ID),
    "a plan": plan_of_shop,
    "an authorization": lambda shelf: shelf.operation(kind=Kind.AUTHORIZATION, result_ref=TOKEN_HASH),
    "a hosted authorization": hosted_authorization,
    "the checkout of a plan": lambda shelf: shelf.checkout(kind=CheckoutKind.RECURRING, subscription_id=PLAN_ID),
}
ON_AUTHORIZATION: Final = {**OTHER, "subject": f"authorization/{TOKEN_HASH}"}
ACTS: Final[dict[str, dict[str, object]]] = {
    "refund": {**OTHER, "kind": Kind.REFUND, "payment_id": PAYMENT_ID},
    "capture": {**ON_AUTHORIZATION, "kind": Kind.CAPTURE},
    "void": {**ON_AUTHORIZATION, "kind": Kind.VOID},
    "retry": {**OTHER, "kind": Kind.RETRY, "subscription_id": PLAN_ID},
    "cancel": {**OTHER, "kind": Kind.CANCEL, "subscription_id": PLAN_ID},
}
PAIRS: Final = [
    *(("refund", made) for made in ("a charge", "a checkout", "a plan")),
    *((act, made) for act in ("capture", "void") for made in ("an authorization", "a hosted authorization")),
    *((act, made) for act in ("retry", "cancel") for made in ("a plan", "the checkout of a plan")),
]


@pytest.mark.parametrize(("act", "made"), PAIRS)
async def test_who_acted_on_anothers_thing_is_found(shelf: Shelf, engine: str, act: str, made: str) -> None:
    """And the other way round nothing is: who was acted upon did nothing."""
    await MADE[made](shelf)
    await shelf.operation(**ACTS[act])

    assert await found(shelf, engine) == [("kiosk", "shop")]


@pytest.mark.parametrize(("act", "made"), PAIRS)
async def test_who_acts_on_its_own_things_is_not_found(shelf: Shelf, engine: str, act: str, made: str) -> None:
    """Most merchants have one principal, and nothing to decide."""
    await MADE[made](shelf)
    await shelf.operation(**(ACTS[act] | {"principal": "shop"}))

    assert await found(shelf, engine) == []


@pytest.mark.parametrize("state", sorted(WITHOUT_EFFECT))
async def test_an_act_without_effect_is_not_found(shelf: Shelf, engine: str, state: State) -> None:
    """Who only tried gets nothing for it."""
    await MADE["a charge"](shelf)
    await shelf.operation(**ACTS["refund"], state=state)

    assert await found(shelf, engine) == []


SHARED: Final[dict[str, tuple[Deed, Deed]]] = {
    "two charges": (lambda shelf: shelf.operation(), lambda shelf: shelf.operation(principal="kiosk")),
    "a charge and a checkout": (
        lambda shelf: shelf.operation(),
        lambda shelf: shelf.checkout(principal="kiosk", guard="A-1"),
    ),
    "two checkouts": (
        lambda shelf: shelf.checkout(guard="A-1"),
        lambda shelf: shelf.checkout(principal="kiosk", state=CheckoutState.EXPIRED, payment_id=PAYMENT_ID),
    ),
}


@pytest.mark.parametrize("what", SHARED)
async def test_who_shares_an_order_is_found_in_both_directions(shelf: Shelf, engine: str, what: str) -> None:
    """Each may go on with it as before."""
    for deed in SHARED[what]:
        await deed(shelf)

    assert await found(shelf, engine) == [("kiosk", "shop"), ("shop", "kiosk")]


async def test_two_merchants_have_nothing_to_do_with_each_other(shelf: Shelf, engine: str) -> None:
    """Numbers of payments and orders are equal across gateways by chance."""
    await MADE["a charge"](shelf)
    await shelf.operation(**ACTS["refund"], merchant="f" * 16)
    await shelf.operation(principal="kiosk", merchant="f" * 16)

    assert await found(shelf, engine) == []


async def test_what_the_migration_passed_over_is_added(shelf: Shelf) -> None:
    """A desk whose refunds say nothing of an owner is asked about, and so is one that the gateway's records betray."""
    database = shelf.book.database
    for principal in ("desk", "kiosk", "shop"):
        key = msgspec.structs.replace(
            KEY, id=principal, principal=principal, key_hash=principal.encode(), scopes=SCOPES
        )
        await Credentials(database, digests_of(database)).add(key)
    await shelf.operation()
    await shelf.operation(principal="desk", kind=Kind.REFUND, payment_id="999", order_id=None, state=State.REFUSED)
    await shelf.operation(principal="kiosk", order_id="B-1")
    await shelf.operation(principal="kiosk", kind=Kind.REFUND, payment_id="888", order_id=None)
    await shelf.seen("A-1", "888")
    await database.write(_run("INSERT INTO grandfathered VALUES ('x', 'shop', 'desk', 'unseen', 0, NULL, '')"))
    for _ in range(2):
        for added in (FORGET_UNSEEN, ADD_ACTED, ADD_UNSEEN):
            await database.write(all_rows(Statement(added, ())))
    await database.write(digests_of(database).add_missing(GRANDFATHERED))

    pairs = await Principals(database, digests_of(database)).grandfathered()
    assert [(each.id, each.reason, each.actions) for each in pairs] == [
        ("desk\nkiosk", "unseen", 0),
        ("desk\nshop", "unseen", 0),
        ("kiosk\nshop", "acted", 1),
    ]
