"""Whether what a mark names is in the database, on both engines."""

from typing import Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import ASKED, CHECKOUT
from tests.store.conftest import CHAIN_KEY, Book

from payrelay.core.checkouts.checkout import Checkout, CheckoutEvent, Details, advance
from payrelay.core.database.marks import Mark, MarkedAnchor, MarkedCheckout, MarkedOperation, Missing
from payrelay.core.payments.audit_chain import AnchoredSpan, ChainKey
from payrelay.core.payments.operation import Event, Operation
from payrelay.store.checkouts import Checkouts
from payrelay.store.database.marked_rows import MarkedRows
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.journal import Journal

SEAL: Final = Seal((b"k" * 32,))
EMPTY: Final = Mark(database="one", incarnation=1, written_at_ms=1_000)
LATER_MS: Final = 10**13


def marking(*operations: Operation) -> Mark:
    """Gives a mark that names operations as they were stored."""
    marked = (MarkedOperation(each.id, each.version, each.chain, each.updated_at_ms) for each in operations)
    return msgspec.structs.replace(EMPTY, operations=tuple(marked))


@pytest.fixture
def rows(database: Database) -> MarkedRows:
    """Gives what is under test."""
    return MarkedRows(database, Trail(database, SEAL, ChainKey(CHAIN_KEY)))


async def test_every_version_that_was_acknowledged_is_found_for_good(book: Book, rows: MarkedRows) -> None:
    """A later change of an operation, or the end of its claim, must never look like lost commits."""
    acknowledged: list[Operation] = []
    book.journal = Journal(
        book.database, SEAL, digests_of(book.database), chain_key=CHAIN_KEY, acknowledged=acknowledged.append
    )
    await book.accept(book.new(1))
    await book.accept(book.new(1, id="op_repeat"))  # the same claim: nothing was stored, and nothing acknowledged
    await book.advance(acknowledged[0], Event.LOST)
    await book.journal.prune(LATER_MS, 10)

    assert [each.version for each in acknowledged] == [1, 2]
    assert await rows.missing(EMPTY) == ()
    for operation in acknowledged:
        assert await rows.missing(marking(operation)) == ()


async def test_what_is_not_there_as_it_was_is_missing_the_oldest_first(book: Book, rows: MarkedRows) -> None:
    """In a restored copy the same operation may have gone on in another way since: the digest tells."""
    await book.accept(book.new(1))
    known = book.stored(book.new(1))
    later = msgspec.structs.replace(known, version=2, updated_at_ms=30)
    other = msgspec.structs.replace(known, chain="another", updated_at_ms=20)

    assert await rows.missing(marking(later, other)) == (
        Missing(f"operation {known.id} in version 1", 20),
        Missing(f"operation {known.id} in version 2", 30),
    )


async def test_a_checkout_is_found_in_the_version_of_the_mark_or_a_later_one(
    database: Database, rows: MarkedRows
) -> None:
    """A checkout that was completed, or whose customer was forgotten since, is still there."""
    acknowledged: list[Checkout] = []
    checkouts = Checkouts(database, SEAL, digests_of(database), acknowledged=acknowledged.append)
    assert await checkouts.add(CHECKOUT, Details(secret="secret", asked=ASKED))
    assert not await checkouts.add(CHECKOUT, Details(secret="secret", asked=ASKED))
    cancelled = advance(CHECKOUT, CheckoutEvent.ABANDONED, at_ms=CHECKOUT.created_at_ms + 1, result=None)
    assert cancelled is not None
    await checkouts.change(cancelled, has_event=True)
    await checkouts.forget(LATER_MS)

    assert [each.version for each in acknowledged] == [1, 2]
    named = [MarkedCheckout(CHECKOUT.id, version, 5) for version in (1, 2, 3)]
    missing = [await rows.missing(msgspec.structs.replace(EMPTY, checkout=each)) for each in named]
    assert missing == [(), (), (Missing(f"checkout {CHECKOUT.id} in version 3", 5),)]
    gone = msgspec.structs.replace(EMPTY, checkout=MarkedCheckout("chk_other", 1, 5))
    assert await rows.missing(gone) == (Missing("checkout chk_other in version 1", 5),)


async def test_an_anchor_that_is_gone_is_missing(book: Book, rows: MarkedRows) -> None:
    """The audit's newest anchor is lost with the commits, also where none of the newest operations is."""
    await book.accept(book.new(1))
    trail = book.journal.trail
    anchor = await trail.anchor("", AnchoredSpan(1, 0, LATER_MS, LATER_MS))
    assert await trail.add(anchor)

    named = [MarkedAnchor(anchor.text, 5), MarkedAnchor("2:digest", 6)]
    missing = [await rows.missing(msgspec.structs.replace(EMPTY, anchor=each)) for each in named]
    assert missing == [(), (Missing("anchor 2 of the audit", 6),)]


async def test_the_newest_entry_that_is_there_tells_from_when_on_commits_are_lost(book: Book, rows: MarkedRows) -> None:
    """A recovery asks for the whole time in which something may have been lost."""
    assert await rows.newest_entry_ms(LATER_MS) is None
    await book.accept(book.new(1))
    await book.advance(book.new(1), Event.LOST)

    assert [await rows.newest_entry_ms(until_ms) for until_ms in (999, 1_500, 2_000)] == [None, 1_000, 2_000]
