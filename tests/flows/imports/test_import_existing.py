"""Taking over what a shop had before: each item once, nobody else's, and nothing that Payrelay may have made."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
from tests.flows.world import CHARGE, START_MS, Crash, World, asked, outcome_of
from tests.samples import PAYMENT

from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.imported import ImportVerdict
from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import PaymentsSeen, PaymentStatus
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.errors import Code, Refusal
from payrelay.flows.customers.erase_customer import remove
from payrelay.flows.operators.parts import Actor
from payrelay.flows.payments.charge import charge
from payrelay.flows.resolution.resolve import resolve_due
from payrelay.imports.flows.import_existing import (
    FOREIGN,
    FOREIGN_ORDER,
    REMOVED,
    ImportedItem,
    ImportReport,
    ImportScope,
    import_existing,
)
from payrelay.imports.rules.items import CardItem, Item, NoItem, PaymentItem, PlanItem
from payrelay.store.imports.payments import CONTRADICTS, MAY_BE_OURS

HOUR_MS = 3_600_000
CARD = CardItem(place="line 1", token=Secret("59AFEE022CC69CA39D325E1B59130862"), reference="7", order_id="P-1")
PAID = PaymentItem(
    place="line 2",
    payment_id="320025000001",
    order_id="A-1",
    currency="LKR",
    amount_minor=100_000,
    paid_at_ms=START_MS - HOUR_MS,
)
PLAN = PlanItem(place="line 3", subscription_id="42", order_id="S-1", state=SubscriptionState.ACTIVE)
INSTALLMENT = PaymentItem(
    place="line 4", payment_id="320025000009", order_id="S-1", currency="LKR", amount_minor=99_000, subscription_id="42"
)
PAID_PLAN = msgspec.structs.replace(
    PLAN, place="line 4", payment_id="320025000009", paid=1, currency="LKR", amount_minor=99_000, at_ms=START_MS
)
REFUSED = NoItem(place="line 5", reason="why")
PASSED = NoItem(place="line 6", reason="why", is_refused=False)
ALL: tuple[Item, ...] = (CARD, PAID, PLAN, INSTALLMENT, PAID_PLAN, REFUSED, PASSED)


async def given(items: Sequence[Item]) -> AsyncIterator[Item]:
    """Gives items, one after the other."""
    for item in items:
        yield item


def scope_of(world: World, principal: str = "shop", *, is_dry: bool = False) -> ImportScope:
    """Gives what an import of the principal's is for."""
    return ImportScope(
        account="gateway",
        merchant=world.account.merchant,
        principal=principal,
        source="shop.csv",
        actor=Actor("ada"),
        is_dry=is_dry,
    )


async def imported(
    world: World, *items: Item, principal: str = "shop", is_dry: bool = False
) -> tuple[ImportReport, list[ImportedItem]]:
    """Imports items."""
    told: list[ImportedItem] = []
    scope = scope_of(world, principal, is_dry=is_dry)
    return await import_existing(world.relay, scope, given(items), told.append), told


async def verdict_of(world: World, item: Item, principal: str = "shop") -> tuple[ImportVerdict, str]:
    """Imports one item, and gives what became of it."""
    _, [told] = await imported(world, item, principal=principal)
    return told.verdict, told.reason


@pytest.mark.parametrize("is_dry", [True, False])
async def test_everything_is_told_in_the_order_of_the_file(world: World, *, is_dry: bool) -> None:
    """A dry run tells the very same."""
    report, told = await imported(world, *ALL, is_dry=is_dry)

    assert [each.item for each in told] == list(ALL)
    assert [each.verdict for each in told] == [
        *(ImportVerdict.NEW, ImportVerdict.NEW, ImportVerdict.NEW, ImportVerdict.NEW),
        *(ImportVerdict.KNOWN, ImportVerdict.REFUSED, ImportVerdict.PASSED_OVER),
    ]
    assert report.of(ImportVerdict.NEW) == {"cards": 1, "payments": 2, "subscriptions": 1}
    known = await world.relay.subscriptions.summary(world.account.merchant, "42")
    assert (known is None) is is_dry
    assert known is None or (known.paid, known.subscription.principal) == (1, "shop")


async def test_whatever_comes_twice_is_imported_once(world: World) -> None:
    """Also within one file, and whatever a dry run says of it."""
    twice = msgspec.structs.replace(PAID, place="line 9")
    otherwise = msgspec.structs.replace(PAID, place="line 10", amount_minor=1)
    items = (CARD, PAID, twice, msgspec.structs.replace(CARD, place="line 8"), otherwise)
    _, dry = await imported(world, *items, is_dry=True)
    _, real = await imported(world, *items)
    report, _ = await imported(world, CARD, PAID, PLAN, PLAN)

    assert [each.verdict for each in dry] == [each.verdict for each in real]
    assert [each.reason for each in real] == ["", "", "", "", CONTRADICTS]
    assert report.of(ImportVerdict.NEW) == {"subscriptions": 1}


async def test_an_import_that_dies_anywhere_ends_like_one_that_did_not(world: World) -> None:
    """At each item: what is begun again leads to the same end."""

    async def dying(at: int) -> AsyncIterator[Item]:
        for item in ALL[:at]:
            yield item
        raise Crash

    for at in range(len(ALL) + 1):
        with pytest.raises(Crash):
            await import_existing(world.relay, scope_of(world), dying(at), lambda _: None)
        await world.reopen()
    report, _ = await imported(world, *ALL)

    assert sum(report.of(ImportVerdict.NEW).values()) == 4
    again, _ = await imported(world, *ALL)
    assert again.of(ImportVerdict.NEW) == {}


async def test_two_imports_at_once_double_nothing(world: World) -> None:
    """Two terminals, one file."""
    both = await asyncio.gather(imported(world, *ALL), imported(world, *ALL))

    assert all(each.of(ImportVerdict.REFUSED) == {"lines": 1} for each, _ in both)
    assert len(await world.relay.money.imported_payments.of_order(world.account.merchant, "A-1")) == 1
    customers = {each.customer_id for _, told in both for each in told if each.customer_id is not None}
    assert len(customers) == 1


async def test_what_another_principal_owns_is_refused(world: World) -> None:
    """Two shops of one merchant have one list of payments at the gateway, and each its own here."""
    await imported(world, *ALL, principal="rival")
    other_order = msgspec.structs.replace(PAID, payment_id="320025000077")

    assert (await verdict_of(world, PAID))[0] is ImportVerdict.REFUSED
    assert await verdict_of(world, other_order) == (ImportVerdict.REFUSED, FOREIGN_ORDER)
    assert await verdict_of(world, PLAN) == (ImportVerdict.REFUSED, FOREIGN)
    assert await verdict_of(world, msgspec.structs.replace(PLAN, subscription_id="43", order_id="A-1")) == (
        ImportVerdict.REFUSED,
        FOREIGN_ORDER,
    )


async def test_a_payment_of_ours_is_known_and_of_anothers_refused(world: World) -> None:
    """The shop's old notifications go on coming, and tell of charges that Payrelay made."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=PAID.payment_id))
    await charge(world.relay, asked(), CHARGE)

    assert await verdict_of(world, PAID) == (ImportVerdict.KNOWN, "")
    assert await verdict_of(world, PAID, principal="rival") == (ImportVerdict.REFUSED, FOREIGN)


async def test_an_import_takes_no_proof_from_a_charge_whose_answer_was_lost(world: World) -> None:
    """Otherwise we would say that a charge failed which took money, because the shop's table has its payment."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(), CHARGE)

    assert await verdict_of(world, PAID) == (ImportVerdict.REFUSED, MAY_BE_OURS)


async def test_a_past_payment_proves_no_later_charge(world: World) -> None:
    """The order was paid before with the same amount; the charge of today never arrived."""
    await imported(world, PAID)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(), CHARGE)
    before = msgspec.structs.replace(PAYMENT, payment_id=PAID.payment_id, at_ms=START_MS, description="Tea")
    world.account.observations.append(PaymentsSeen(payments=(before,), evidence=Evidence()))
    world.clock.passed_ms += 2_000

    await resolve_due(world.relay)

    row = await world.operation()
    assert row.state is State.UNKNOWN
    assert (await world.journal.history(row.id))[-1].evidence.seen == "only_others"


@pytest.mark.parametrize(
    ("key", "members", "is_refused"),
    [
        (None, {}, True),
        ("k-1", {}, False),
        (None, {"amount_minor": 1}, False),
        (None, {"currency": "USD"}, False),
        (None, {"paid_at_ms": START_MS - 25 * HOUR_MS}, False),
        (None, {"paid_at_ms": None}, True),
        (None, {"status": PaymentStatus.REFUNDED}, False),
    ],
)
async def test_an_apps_repeat_across_the_move_charges_nobody_again(
    world: World, key: str | None, members: dict[str, object], *, is_refused: bool
) -> None:
    """Its first try went to the gateway without Payrelay, and its answer was lost: there is no claim to find."""
    await imported(world, msgspec.structs.replace(PAID, **members))

    if not is_refused:
        await charge(world.relay, asked(key), CHARGE)
        return
    with pytest.raises(Refusal) as caught:
        await charge(world.relay, asked(key), CHARGE)
    assert caught.value.code is Code.CONFLICT
    assert world.account.ledger == []


async def test_a_customer_that_was_removed_is_not_brought_back(world: World) -> None:
    """Whoever asked to be forgotten must not return with the next run of the same file."""
    _, [told] = await imported(world, CARD)
    customer = await world.relay.customers.get(told.customer_id or "")
    assert customer is not None
    await remove(world.relay, customer)

    assert await verdict_of(world, CARD) == (ImportVerdict.REFUSED, REMOVED)
    assert await verdict_of(world, msgspec.structs.replace(CARD, order_id=None)) == (ImportVerdict.REFUSED, REMOVED)


async def test_a_payment_that_was_refused_gets_no_owner_by_its_subscription(world: World) -> None:
    """A file could name another shop's payment as an installment of its own."""
    await imported(world, INSTALLMENT, principal="rival")
    stolen = msgspec.structs.replace(PAID_PLAN, order_id="S-2", subscription_id="44")
    await imported(world, stolen)

    owners = await world.relay.access.owners.of_payment(world.account.merchant, INSTALLMENT.payment_id)
    assert owners == {"rival"}


async def test_the_table_of_subscriptions_ends_what_the_payments_call_active(world: World) -> None:
    """A shop that cancelled a subscription has no notification of that; only its own table says so."""
    stopped = msgspec.structs.replace(PLAN, place="line 7", state=SubscriptionState.STOPPED)
    await imported(world, INSTALLMENT, PAID_PLAN, stopped)

    known = await world.relay.subscriptions.summary(world.account.merchant, "42")
    assert known is not None
    assert (known.subscription.state, known.paid) == (SubscriptionState.STOPPED, 1)


async def test_a_subscription_that_is_known_for_another_order_is_refused(world: World) -> None:
    """One of the two files is wrong, and nobody here knows which."""
    await imported(world, PLAN)

    assert (await verdict_of(world, msgspec.structs.replace(PLAN, order_id="S-9")))[0] is ImportVerdict.REFUSED


async def test_the_history_of_operators_tells_who_imported_what(world: World) -> None:
    """And a dry run leaves no line."""
    await imported(world, *ALL, is_dry=True)
    await imported(world, *ALL)

    acts = await world.relay.acts.before(None, 9)
    counted = ["1 cards new", "1 lines passed over", "1 lines refused", "2 payments new"]
    counted += ["1 subscriptions known", "1 subscriptions new"]
    assert [(each.name, each.subject, each.details) for each in acts] == [
        (
            "ada",
            "gateway/shop",
            f"shop.csv: done: {', '.join(counted)}",
        ),
        ("ada", "gateway/shop", "shop.csv: begun"),
    ]
