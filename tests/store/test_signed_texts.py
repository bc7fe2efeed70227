# ruff: noqa: S608 - what is put into the texts are digests that are made here

"""The list of signed texts: what a gateway signs for us, by digests that nobody without the store's secret can make."""

from typing import Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import ASKED
from tests.samples import CHECKOUT as PLAIN_CHECKOUT
from tests.store.conftest import CHAIN_KEY, CHARGE, Book, Tamper

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, Details
from payrelay.core.checkouts.text_holders import HolderKind, TextHolder
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation
from payrelay.errors import StoreUnavailable
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation
from payrelay.store.signed_texts import SignedTexts

SEAL: Final = Seal((b"k" * 32,))
MERCHANT: Final = "0123456789abcdef"
TEXT: Final = SignedText(order_id="A1", amount_minor=251_000, currency="LKR")
SPLIT: Final = SignedText(order_id="A125", amount_minor=1_000, currency="LKR")
OTHER: Final = SignedText(order_id="A1", amount_minor=251_001, currency="LKR")
CHECKOUT: Final = msgspec.structs.replace(PLAIN_CHECKOUT, id="chk_1", order_id="A1", guard=None, key_hash=None)
HOLD: Final = msgspec.structs.replace(CHARGE, authorize=True, order_id="A1", amount_minor=251_000)
ALL: Final = query("SELECT digest, subject, kind, at_ms FROM signed_texts ORDER BY subject, digest")


@pytest.fixture
def signed_texts(database: Database) -> SignedTexts:
    """Gives what is under test."""
    return SignedTexts(database, digests_of(database), secret=CHAIN_KEY)


def form(checkout: Checkout = CHECKOUT, *, is_exact: bool = True) -> TextHolder:
    """Gives how a checkout is found."""
    return TextHolder(
        subject=checkout.id,
        kind=HolderKind.FORM,
        noun=checkout.kind.value,
        order_id=checkout.order_id,
        is_exact=is_exact,
    )


def call(operation: Operation) -> TextHolder:
    """Gives how an operation is found."""
    return TextHolder(
        subject=operation.id,
        kind=HolderKind.CALL,
        noun=operation.kind.value,
        order_id=operation.order_id,
        is_exact=True,
    )


async def add(database: Database, *checkouts: Checkout) -> None:
    """Stores checkouts with no texts, as where somebody took them out of the list."""
    store = Checkouts(database, SEAL, digests_of(database))
    for checkout in checkouts:
        assert await store.add(checkout, Details(secret="s", asked=ASKED))


async def accept(book: Book, signed_texts: SignedTexts | None = None, **members: object) -> Operation:
    """Stores an authorization of A1, with its text or, as where somebody took it out of the list, without it."""
    own = {"kind": Kind.AUTHORIZATION, "order_id": "A1", "amount_minor": 251_000}
    operation = book.new(1, **(own | members))
    texts = () if signed_texts is None else signed_texts.of_call(operation, [TEXT])
    entry = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=Evidence())
    accepted = await book.journal.accept(operation, entry, HOLD, conflicts_with=None, now_ms=1_000, beside=texts)
    assert isinstance(accepted, AcceptedOperation)
    return accepted.operation


async def rows(database: Database) -> list[Row]:
    """Reads the whole list."""
    return await database.read(_all(Statement(ALL, ())))


async def test_a_form_is_found_by_every_split_of_its_text(database: Database, signed_texts: SignedTexts) -> None:
    """The customer moves the border between order and amount, and the signature stays the same."""
    await add(database, CHECKOUT)
    await signed_texts.keep_form(CHECKOUT, [TEXT], at_ms=1)

    assert await signed_texts.holders(MERCHANT, [SPLIT]) == [form()]
    assert await signed_texts.holders(MERCHANT, [TEXT, SPLIT]) == [form()]
    assert await signed_texts.holders(MERCHANT, [OTHER]) == []
    assert await signed_texts.holders("f" * 16, [SPLIT]) == []


async def test_a_text_that_is_stored_is_not_written_again(database: Database, signed_texts: SignedTexts) -> None:
    """A page that is refreshed writes nothing; one that is shown on the plan's first day adds the new amount."""
    await signed_texts.keep_form(CHECKOUT, [TEXT], at_ms=1)
    await signed_texts.keep_form(CHECKOUT, [SPLIT], at_ms=2)
    await signed_texts.keep_form(CHECKOUT, [TEXT, OTHER], at_ms=3)

    assert sorted(str(row[3]) for row in await rows(database)) == ["1", "3"]


async def test_a_form_without_texts_writes_nothing(database: Database, signed_texts: SignedTexts) -> None:
    """A gateway whose signatures tell fields apart has none."""
    await signed_texts.keep_form(CHECKOUT, [], at_ms=1)

    assert await rows(database) == []


@pytest.mark.parametrize("state", CheckoutState)
async def test_the_first_form_leaves_of_an_open_checkout_alone(
    database: Database, signed_texts: SignedTexts, state: CheckoutState
) -> None:
    """Whoever closed it was told that no form is out. One that is out already may leave again: that is known."""
    await add(database, msgspec.structs.replace(CHECKOUT, state=state))
    assert await signed_texts.has_form(CHECKOUT.id) is False
    is_open = state is CheckoutState.OPEN

    assert await signed_texts.keep_form(CHECKOUT, [TEXT], at_ms=1) is is_open
    assert await signed_texts.keep_form(CHECKOUT, [TEXT], at_ms=2) is True
    assert await signed_texts.keep_form(CHECKOUT, [OTHER], at_ms=3) is True
    assert await signed_texts.has_form(CHECKOUT.id) is True


async def test_the_list_shows_nobody_an_order(database: Database, signed_texts: SignedTexts) -> None:
    """Whoever reads the database, and guesses an order and an amount, can't check the guess without the secret."""
    await signed_texts.keep_form(CHECKOUT, [TEXT], at_ms=1)
    ((digest, *_),) = await rows(database)

    assert digest == signed_texts.digest_of(MERCHANT, SPLIT)
    assert digest != SignedTexts(database, digests_of(database), secret=b"d" * 32).digest_of(MERCHANT, TEXT)
    assert digest != signed_texts.digest_of("f" * 16, TEXT)


async def test_a_call_is_stored_with_its_intent_or_not_at_all(book: Book, signed_texts: SignedTexts) -> None:
    """A call that is sent without its text in the list could be told as another one later."""
    operation = await accept(book, signed_texts)
    again = book.new(2, id="op_2", claim=operation.claim)
    entry = JournalEntry(version=1, at_ms=1_000, event=None, state=again.state, evidence=Evidence())
    texts = signed_texts.of_call(again, [OTHER])
    repeat = await book.journal.accept(again, entry, HOLD, conflicts_with=None, now_ms=1_000, beside=texts)

    assert isinstance(repeat, ClaimedOperation)
    assert await signed_texts.holders(MERCHANT, [SPLIT]) == [call(operation)]
    assert await signed_texts.holders(MERCHANT, [OTHER]) == []


async def test_a_text_that_can_not_be_stored_undoes_the_intent(book: Book, signed_texts: SignedTexts) -> None:
    """Nothing may be sent then."""
    operation = book.new(1, kind=Kind.AUTHORIZATION)
    entry = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=Evidence())
    missing = Statement(query("SELECT 1 FROM no_such_table"), ())
    texts = (*signed_texts.of_call(operation, [TEXT]), missing)
    with pytest.raises(Exception, match="no_such_table"):
        await book.journal.accept(operation, entry, HOLD, conflicts_with=None, now_ms=1_000, beside=texts)

    assert await book.journal.get(operation.id) is None
    assert await rows(book.database) == []


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize(
    ("event", "is_found"),
    [
        (Event.SUCCEEDED, True),
        (Event.PENDING, True),
        (Event.UNKNOWN, True),
        (Event.DIFFERED, True),
        (Event.DECLINED, False),
        (Event.REFUSED, False),
        (Event.NOT_SENT, False),
        (Event.NOT_EXECUTED, False),
    ],
)
async def test_a_call_counts_unless_it_was_surely_not_executed(
    book: Book, signed_texts: SignedTexts, event: Event, *, is_found: bool, is_listed: bool
) -> None:
    """Only an executed call has a notification that is signed."""
    operation = await accept(book, signed_texts if is_listed else None)
    await book.advance(operation, event)

    found = await signed_texts.holders(MERCHANT, [SPLIT, TEXT])
    assert [each.subject for each in found] == [operation.id] * is_found


async def test_a_failure_that_an_operator_decided_still_counts(book: Book, signed_texts: SignedTexts) -> None:
    """No record shows an authorization, so that its failure is somebody's word, and no proof."""
    operation = await accept(book, signed_texts)
    unknown = await book.advance(operation, Event.UNKNOWN)
    await book.advance(unknown, Event.DECIDED_FAILED)

    assert [each.subject for each in await signed_texts.holders(MERCHANT, [SPLIT])] == [operation.id]


async def test_what_has_no_text_counts_with_every_amount_that_it_may_have(
    book: Book, signed_texts: SignedTexts
) -> None:
    """Who takes all texts of a checkout out of the list hides nothing by that."""
    approval = msgspec.structs.replace(
        CHECKOUT, id="chk_2", kind=CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None
    )
    plan = msgspec.structs.replace(
        CHECKOUT, id="chk_3", kind=CheckoutKind.RECURRING, amount_minor=1_000, first_minor=251_000
    )
    other = msgspec.structs.replace(CHECKOUT, id="chk_4", amount_minor=1_000, first_minor=1_000)
    await add(book.database, approval, plan, other)
    charge = await accept(book, kind=Kind.CHARGE)

    found = await signed_texts.holders(MERCHANT, [TEXT])
    assert sorted(found, key=lambda each: each.subject) == [
        form(approval, is_exact=False),
        form(plan),
        call(charge),
    ]


async def test_a_page_that_was_withdrawn_has_given_out_no_form(database: Database, signed_texts: SignedTexts) -> None:
    """Nobody was told of it, so nobody paid by it. One whose time was over may still be paid."""
    amount = {"amount_minor": TEXT.amount_minor, "first_minor": TEXT.amount_minor}
    expired = msgspec.structs.replace(CHECKOUT, state=CheckoutState.EXPIRED, guard=None, **amount)
    at_its_end = msgspec.structs.replace(expired, id="chk_2", updated_at_ms=expired.expires_at_ms)
    await add(database, msgspec.structs.replace(expired, updated_at_ms=expired.expires_at_ms - 1), at_its_end)

    assert await signed_texts.holders(MERCHANT, [TEXT]) == [form(at_its_end)]


APPROVAL: Final = msgspec.structs.replace(
    CHECKOUT, kind=CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None, order_id="A125"
)


@pytest.mark.parametrize(
    "forgery",
    [
        f"UPDATE signed_texts SET digest = '{'f' * 64}' WHERE digest = (SELECT max(digest) FROM signed_texts)",
        "UPDATE signed_texts SET subject = 'chk_2'",
        "UPDATE signed_texts SET merchant = 'ffffffffffffffff'",
        "UPDATE signed_texts SET row_digest = ''",
        "DELETE FROM signed_texts",
        "DELETE FROM signed_texts WHERE digest = (SELECT min(digest) FROM signed_texts)",
    ],
)
@pytest.mark.parametrize("checkout", [CHECKOUT, APPROVAL])
async def test_a_changed_list_hides_no_form(
    database: Database, signed_texts: SignedTexts, tamper: Tamper, checkout: Checkout, forgery: str
) -> None:
    """A form of A125 for 10.00 has the text of A1 for 2510.00: taking it out of the list proves nothing."""
    fixed = None if checkout is APPROVAL else 1_000
    checkout = msgspec.structs.replace(checkout, order_id="A125", amount_minor=fixed, first_minor=fixed)
    await add(database, checkout)
    await signed_texts.keep_form(checkout, [SPLIT], at_ms=1)
    if checkout.kind is CheckoutKind.PREAPPROVAL:
        await signed_texts.keep_form(checkout, [OTHER], at_ms=2)  # on another day, with another setting
    await tamper(forgery)

    assert [each.subject for each in await signed_texts.holders(MERCHANT, [TEXT, SPLIT])] == [checkout.id]


async def test_a_list_that_lacks_a_text_is_not_made_whole_by_the_next(
    database: Database, signed_texts: SignedTexts, tamper: Tamper
) -> None:
    """The page is shown again after a text was removed: the number of those that there were stays too high."""
    await add(database, APPROVAL)
    for text in (SPLIT, OTHER):
        await signed_texts.keep_form(APPROVAL, [text], at_ms=1)
    assert await signed_texts.holders(MERCHANT, [msgspec.structs.replace(SPLIT, amount_minor=4_711)]) == []
    await tamper(f"DELETE FROM signed_texts WHERE digest = '{signed_texts.digest_of(MERCHANT, SPLIT)}'")
    third = msgspec.structs.replace(SPLIT, amount_minor=5)
    await signed_texts.keep_form(APPROVAL, [third], at_ms=2)

    assert [each.subject for each in await signed_texts.holders(MERCHANT, [TEXT, SPLIT])] == [APPROVAL.id]


async def test_a_call_that_somebody_calls_declined_still_counts(
    book: Book, signed_texts: SignedTexts, tamper: Tamper
) -> None:
    """A declined call has nothing signed; whether it was declined, a row without its digest doesn't say."""
    operation = await accept(book, signed_texts)
    await tamper("UPDATE operations SET state = 'declined'")

    assert [each.subject for each in await signed_texts.holders(MERCHANT, [SPLIT])] == [operation.id]
    assert [each.subject for each in await signed_texts.holders(MERCHANT, [TEXT])] == [operation.id]


async def test_a_form_of_a_forged_checkout_is_nobodys_second_approval(
    database: Database, signed_texts: SignedTexts, tamper: Tamper
) -> None:
    """A second form for an approval of an order is let pass: what a forged row says that it is excuses nothing."""
    await add(database, CHECKOUT)
    await signed_texts.keep_form(CHECKOUT, [TEXT], at_ms=1)
    await tamper("UPDATE checkouts SET kind = 'preapproval', order_id = 'A125'")
    [holder] = await signed_texts.holders(MERCHANT, [SPLIT])

    assert (holder.noun, holder.order_id) == (None, None)


async def test_the_audit_misses_a_removed_text(book: Book, signed_texts: SignedTexts, tamper: Tamper) -> None:
    """The others of its checkout say how many there were."""
    for text in (TEXT, OTHER):
        await signed_texts.keep_form(CHECKOUT, [text], at_ms=1)
    assert await book.journal.trail.miscounted_texts() == []
    await tamper(f"DELETE FROM signed_texts WHERE digest = '{signed_texts.digest_of(MERCHANT, TEXT)}'")

    assert await book.journal.trail.miscounted_texts() == [CHECKOUT.id]


async def test_an_erasure_leaves_the_list(database: Database, signed_texts: SignedTexts) -> None:
    """The form is good at the gateway for ever, and the digest has nothing of the customer."""
    done = msgspec.structs.replace(CHECKOUT, state=CheckoutState.COMPLETED)
    await add(database, done)
    await signed_texts.keep_form(done, [TEXT], at_ms=1)
    assert (
        await Checkouts(database, SEAL, digests_of(database)).forget_order(MERCHANT, done.principal, done.order_id) == 1
    )

    assert await signed_texts.holders(MERCHANT, [SPLIT]) == [form(done)]


async def test_a_list_that_can_not_be_read_is_no_empty_one(database: Database, signed_texts: SignedTexts) -> None:
    """Otherwise a database that is down for a second would prove whatever is notified in it."""
    await database.close()
    with pytest.raises(StoreUnavailable):
        await signed_texts.holders(MERCHANT, [TEXT])


def _all(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)
