"""An operation whose Idempotency-Key the service has rewritten: found as before, and in order for the audit."""

from typing import Any, Final

import msgspec
import pytest
from tests.store.conftest import Tamper
from tests.store.retention.test_clearing import ANSWER, LATER_MS, cleared, findings, operation_of, trail_of

from payrelay.core.payments.operation import Event, claim_of_key
from payrelay.core.retention import Kept
from payrelay.errors import OperationForged, Outdated
from payrelay.flows.operators.audit import anchor

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported

EARLIER: Final = "reference/anna%40example.org/pay"
KEY: Final = "person/0123456789abcdef0123456789abcdef/pay"


def named(book: Book, number: int = 1) -> Any:  # noqa: ANN401
    """Gives an operation that an earlier version stored under a person's name."""
    operation = operation_of(book, number)
    return msgspec.structs.replace(operation, idempotency_key=EARLIER, claim=claim_of_key(EARLIER))


async def done(book: Book) -> Any:  # noqa: ANN401
    """Stores such an operation, with three entries, all of them anchored; gives it as it was read."""
    operation = named(book)
    await book.accept(operation)
    unknown = await book.advance(operation, Event.UNKNOWN)
    await book.advance(unknown, Event.SUCCEEDED, ANSWER)
    await anchor(trail_of(book), LATER_MS)
    return await book.journal.get(operation.id)


async def test_it_is_found_under_the_new_key_alone(book: Book) -> None:
    """A repeat gets its answer, and nothing of the name is left in a row; history and digests still fit."""
    operation = await done(book)
    assert await book.journal.rename_key(operation, KEY)

    claimed = await book.journal.find_claim(operation.principal, claim_of_key(KEY), now_ms=1)
    assert (claimed.operation.id, claimed.answer) == (operation.id, ANSWER)
    assert await book.journal.find_claim(operation.principal, claim_of_key(EARLIER), now_ms=1) is None
    assert (await book.journal.newest_by_key(operation.account, None, KEY)).id == operation.id
    assert len(await book.journal.history(operation.id)) == 3
    assert await findings(book) == []


async def test_its_history_is_cleared_in_time_and_read_from_the_row(book: Book) -> None:
    """The newest entry is computed from the row, which has another key than when the entry was written."""
    operation = await done(book)
    [*_, newest] = await book.journal.history(operation.id)
    await book.journal.rename_key(operation, KEY)

    assert await cleared(book, Kept.HISTORIES) == 1
    assert await book.journal.history(operation.id) == [newest]
    assert await findings(book) == []


async def test_a_closed_history_lets_its_key_be_rewritten_too(book: Book) -> None:
    """An erasure comes years later, when all that is left of a history lies in the row."""
    operation = await done(book)
    await cleared(book)
    [newest] = await book.journal.history(operation.id)

    assert await book.journal.rename_key(await book.journal.get(operation.id), KEY)
    assert await book.journal.history(operation.id) == [newest]
    assert await findings(book) == []


async def test_whoever_read_the_row_before_changes_nothing_of_it(book: Book) -> None:
    """His change has a digest of the row with the earlier key: stored, it would make the row a forged one."""
    operation = named(book)
    await book.accept(operation)
    assert await book.journal.rename_key(await book.journal.get(operation.id), KEY)

    with pytest.raises(Outdated):
        await book.advance(operation, Event.SUCCEEDED, ANSWER)
    current = msgspec.structs.replace(operation, idempotency_key=KEY, claim=claim_of_key(KEY))
    assert (await book.advance(current, Event.SUCCEEDED, ANSWER)).state == "succeeded"
    assert (await book.journal.find_claim("shop", claim_of_key(KEY), now_ms=1)).answer == ANSWER
    assert await findings(book) == []


async def test_a_change_since_the_reading_comes_first(book: Book) -> None:
    """The row that was read is gone: it is read anew, and then gets its key."""
    operation = named(book)
    await book.accept(operation)
    read = await book.journal.get(operation.id)
    await book.advance(operation, Event.UNKNOWN)

    assert not await book.journal.rename_key(read, KEY)
    assert (await book.journal.get(operation.id)).idempotency_key == EARLIER


async def test_a_claim_that_a_later_operation_holds_stays_with_it(book: Book) -> None:
    """Two versions stood side by side, and each took the request under its own key: repeats find the later one."""
    await book.accept(named(book))
    await book.advance(named(book), Event.SUCCEEDED, ANSWER)
    operation = await book.journal.get(named(book).id)
    later = msgspec.structs.replace(operation_of(book, 2), idempotency_key=KEY, claim=claim_of_key(KEY))
    await book.accept(later)

    assert await book.journal.rename_key(operation, KEY)
    assert (await book.journal.find_claim("shop", claim_of_key(KEY), now_ms=1)).operation.id == later.id
    assert (await book.journal.get(operation.id)).claim is None
    assert await findings(book) == []


@pytest.mark.parametrize("event", [None, Event.NOT_SENT], ids=str)
async def test_a_claim_that_was_given_back_is_not_taken_again(book: Book, event: Event | None) -> None:
    """A repeat may be sent anew after that; the key only shows under which one it was."""
    operation = named(book) if event else msgspec.structs.replace(named(book), claim=None)
    await book.accept(operation)
    if event:
        await book.advance(operation, event, ANSWER)

    assert await book.journal.rename_key(await book.journal.get(operation.id), KEY)
    assert (await book.journal.get(operation.id)).claim is None
    assert await findings(book) == []


@pytest.mark.parametrize(
    ("forgery", "is_closed"),
    [
        ("DELETE FROM renamed_keys", False),
        ("DELETE FROM renamed_keys", True),
        ("UPDATE renamed_keys SET masked = 'no digest'", True),
        ("UPDATE renamed_keys SET signature = masked", False),
    ],
)
async def test_the_audit_tells_of_a_line_that_is_not_the_services_own(
    book: Book,
    tamper: Tamper,
    forgery: str,
    is_closed: bool,  # noqa: FBT001, a parameter
) -> None:
    """It is the only proof that the row was not changed by somebody else."""
    operation = await done(book)
    await book.journal.rename_key(operation, KEY)
    if is_closed:
        await cleared(book)
    await tamper(forgery)

    assert await findings(book) != []


async def test_another_key_than_the_service_wrote_is_a_forgery(book: Book, tamper: Tamper) -> None:
    """Somebody would have an app's repeat find another operation."""
    operation = await done(book)
    await book.journal.rename_key(operation, KEY)
    await tamper("UPDATE operations SET idempotency_key = 'person/other/pay', claim = 'key/person/other/pay'")

    with pytest.raises(OperationForged):
        await book.journal.get(operation.id)
    assert await findings(book) != []
