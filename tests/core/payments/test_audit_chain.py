import hmac
import itertools
from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.payments.audit_chain import (
    FIRST_HASHED,
    HASHED,
    UNHASHED,
    AnchoredSpan,
    ChainKey,
    ClosedHistory,
    HistoryCheckpoint,
    Link,
    Value,
    closed_history,
    closed_text,
    digest_of_values,
    row_digest,
)
from payrelay.core.payments.operation import Kind, Operation, State

MakeOperation = Callable[..., Operation]
Lines = list[tuple[str, int, str]]
Anchored = tuple[str, AnchoredSpan, Lines]

SECRET: Final = b"k" * 32
KEY: Final = ChainKey(SECRET)
TEXTS: Final = st.text(max_size=5)
NUMBERS: Final = st.integers(0, 2**53)
LINKS: Final = st.builds(
    Link,
    operation_id=TEXTS,
    version=NUMBERS,
    at_ms=NUMBERS,
    event=TEXTS | st.none(),
    state=TEXTS,
    evidence=TEXTS,
    row_digest=TEXTS,
    answer_digest=TEXTS,
)
SPANS: Final = st.builds(AnchoredSpan, number=NUMBERS, from_ms=NUMBERS, until_ms=NUMBERS, made_at_ms=NUMBERS)
ROWS: Final = st.tuples(*[TEXTS | NUMBERS | st.none() for _ in HASHED])
ANCHORED: Final = st.lists(st.tuples(TEXTS, NUMBERS, TEXTS), max_size=4)


def anchored(previous: str, span: AnchoredSpan, entries: Lines) -> str:
    """Gives the digest of an anchor over some entries."""
    digest = KEY.anchor(previous, span)
    for entry in entries:
        digest.add(*entry)
    return digest.end()


@given(LINKS, LINKS, TEXTS, TEXTS)
def test_two_entries_have_one_hash_only_where_they_are_equal(
    one: Link, other: Link, before: str, before_other: str
) -> None:
    """A journal entry that was changed in any member, or that follows another, is found by its hash."""
    is_equal = (before, one) == (before_other, other)

    assert (KEY.entry(before, one) == KEY.entry(before_other, other)) is is_equal


@given(LINKS, st.sampled_from(Link._fields), TEXTS | NUMBERS | st.none())
def test_every_member_of_an_entry_counts(link: Link, name: str, value: str | int | None) -> None:
    """One changed member changes the hash, and nothing else does."""
    changed = Link(**{**link._asdict(), name: value})

    assert (KEY.entry("", changed) == KEY.entry("", link)) is (changed == link)


@given(LINKS, st.data())
def test_what_moves_from_one_member_to_the_next_is_seen(link: Link, data: st.DataObject) -> None:
    """Members that stand side by side must not run together: `ab` and `c` are not `a` and `bc`."""
    texts = [name for name in Link._fields if isinstance(getattr(link, name), str)]
    first, second = data.draw(st.sampled_from(list(itertools.pairwise(texts))))
    moved = link._replace(**{first: getattr(link, first) + "x"})
    other = link._replace(**{second: "x" + getattr(link, second)})

    assert KEY.entry("", moved) != KEY.entry("", other)


@given(LINKS, TEXTS)
def test_a_hash_is_an_hmac(link: Link, before: str) -> None:
    """It is computed from a kept state for speed; it must be what the standard says, and can be computed elsewhere."""
    message = msgspec.msgpack.encode(("line", before, link))

    assert ChainKey(SECRET).entry(before, link) == hmac.digest(SECRET, message, "sha256").hex()


def test_a_short_key_is_refused() -> None:
    """It would be filled up with zeros, and be guessed the sooner."""
    with pytest.raises(ValueError, match="32 bytes"):
        ChainKey(b"k" * 31)


@given(LINKS, TEXTS)
def test_without_the_key_no_hash_can_be_made(link: Link, before: str) -> None:
    """An attacker with the database alone can make no valid chain."""
    assert KEY.entry(before, link) != ChainKey(b"x" * 32).entry(before, link)


@given(ROWS, ROWS)
def test_two_rows_have_one_digest_only_where_they_are_equal(
    one: tuple[str | int | None, ...], other: tuple[str | int | None, ...]
) -> None:
    """A row that was changed in any column is found; nothing, zero and the empty text are three things."""
    assert (digest_of_values(one) == digest_of_values(other)) is (one == other)


def test_a_row_is_digested_as_the_database_holds_it(make_operation: MakeOperation) -> None:
    """The audit reads plain values; a state that has become another word must not stop it, but be found."""
    operation = make_operation()
    values = tuple(msgspec.to_builtins(getattr(operation, name)) for name in HASHED)

    assert row_digest(operation) == digest_of_values(values)


OTHER = {"kind": Kind.REFUND}


def test_every_column_is_hashed_or_named(make_operation: MakeOperation) -> None:
    """A column that comes later is hashed unless a developer decides otherwise, and gives the reason."""
    assert {*HASHED} | UNHASHED == set(Operation.__struct_fields__)
    digest = row_digest(make_operation())
    assert {row_digest(make_operation(**{name: "other"})) for name in UNHASHED} == {digest}
    assert all(row_digest(make_operation(**{name: OTHER.get(name, "other")})) != digest for name in HASHED)


@given(ROWS, st.integers(0, 3))
def test_a_column_that_comes_later_changes_no_digest_while_it_is_nothing(row: tuple[Value, ...], added: int) -> None:
    """Rows that were left before an upgrade are audited after it; those that never had the column are not tampered."""
    assert digest_of_values((*row, *[None] * added)) == digest_of_values(row)


def test_the_columns_of_the_first_chains_stand_first() -> None:
    """Their order is hashed; a column that is put between two of them makes every row look tampered with."""
    assert " ".join(HASHED[:FIRST_HASHED]) == (
        "id account merchant principal kind state version subject guard idempotency_key fingerprint request_id "
        "order_id payment_id subscription_id amount_minor currency result_ref created_at_ms updated_at_ms send_by_ms"
    )


def test_the_digest_of_a_row_without_a_customer_never_changes(make_operation: MakeOperation) -> None:
    """Rows from before operations knew their customers are audited too: this digest was computed before they did."""
    digest = "fe4fa26d75f4912fc9b4d7fa3507cd8935658cd744d76ce77b5fffb9aff02103"

    assert row_digest(make_operation()) == digest
    assert row_digest(make_operation(customer_id="cus_1")) != digest


@given(TEXTS, TEXTS, st.binary(max_size=5), st.binary(max_size=5))
def test_an_answer_is_the_operations_own(one: str, other: str, answer: bytes, other_answer: bytes) -> None:
    """An answer of another operation, or another answer, is found."""
    is_equal = (one, answer) == (other, other_answer)

    assert (KEY.answer(one, answer) == KEY.answer(other, other_answer)) is is_equal


@given(st.tuples(TEXTS, SPANS, ANCHORED), st.tuples(TEXTS, SPANS, ANCHORED))
def test_two_anchors_have_one_digest_only_where_all_is_equal(one: Anchored, other: Anchored) -> None:
    """A journal entry that is missing, added, or in another place is found, and so is an anchor missing before it."""
    assert (anchored(*one) == anchored(*other)) is (one == other)


@given(SPANS, ANCHORED, ANCHORED)
def test_the_entries_of_an_anchor_alone_decide(span: AnchoredSpan, entries: Lines, more: Lines) -> None:
    """With one span, unequal entries are all there is to tell the anchors apart."""
    assert (anchored("", span, entries) == anchored("", span, more)) is (entries == more)


@given(TEXTS, SPANS, ANCHORED)
def test_the_digest_of_an_anchor_is_an_hmac(previous: str, span: AnchoredSpan, entries: Lines) -> None:
    """Over its span, its entries and their number: an anchor that was kept elsewhere is computed again years later."""
    parts = [("anchor", previous, span), *entries, len(entries)]
    message = b"".join(msgspec.msgpack.encode(part) for part in parts)

    assert anchored(previous, span, entries) == hmac.digest(SECRET, message, "sha256").hex()


def closed(make_operation: MakeOperation, **members: object) -> tuple[Operation, HistoryCheckpoint, Link]:
    """Gives an operation that ended with its second journal entry, and what there is of its history."""
    operation = make_operation(version=2, state=State.SUCCEEDED, **members)
    before, answer = KEY.answer("op", b"before"), KEY.answer("op", b"answer")
    newest = Link(
        operation_id=operation.id,
        version=2,
        at_ms=operation.updated_at_ms,
        event="succeeded",
        state="succeeded",
        evidence='{"http_status":200,"gateway_msg":"\u0dc4\u0dbb\u0dd2 \\"x\\""}',
        row_digest=row_digest(operation),
        answer_digest=answer,
    )
    operation = msgspec.structs.replace(operation, chain=KEY.entry(before, newest))
    return operation, HistoryCheckpoint(operation.id, 2, before, "sending"), newest


def row_of(operation: Operation) -> tuple[Value, ...]:
    """Gives the columns of an operation as they are stored."""
    return tuple(value.stored if isinstance(value, Kind) else value for value in msgspec.structs.astuple(operation))


def read(text: Value, operation: Operation) -> ClosedHistory | None:
    """Reads a closed history with the key."""
    return closed_history(text, row_of(operation), KEY)


def test_a_closed_history_gives_its_newest_entry_back(make_operation: MakeOperation) -> None:
    """What is shown of an operation after years is what was shown before; less is stored of it."""
    operation, checkpoint, newest = closed(make_operation)

    found = read(closed_text(checkpoint, newest, KEY), operation)

    assert found == ClosedHistory(checkpoint, is_signed=True, newest=newest, hash=operation.chain)
    assert found.is_right(KEY)


def test_an_entry_without_an_answer_is_closed_as_it_is(make_operation: MakeOperation) -> None:
    """A payment that never went out has no answer, and no digest of one."""
    operation, checkpoint, newest = closed(make_operation)
    newest = newest._replace(event=None, answer_digest="")
    operation = msgspec.structs.replace(operation, chain=KEY.entry(checkpoint.previous, newest))

    found = read(closed_text(checkpoint, newest, KEY), operation)

    assert found is not None
    assert found.newest == newest
    assert found.is_right(KEY)


@pytest.mark.parametrize("name", ["amount_minor", "updated_at_ms", "version", "chain"])
def test_a_row_that_is_not_as_its_newest_entry_left_it_is_found(make_operation: MakeOperation, name: str) -> None:
    """The entry has no digest of the row beside it: its hash covers the row itself."""
    operation, checkpoint, newest = closed(make_operation)
    changed = {"amount_minor": 1, "updated_at_ms": 1, "version": 3, "chain": "beef"}[name]

    found = read(closed_text(checkpoint, newest, KEY), msgspec.structs.replace(operation, **{name: changed}))

    assert found is not None
    assert not found.is_right(KEY)


def test_only_the_key_closes_a_history(make_operation: MakeOperation) -> None:
    """Whoever takes entries away can't make it look as if they were cleared."""
    operation, checkpoint, newest = closed(make_operation)

    found = read(closed_text(checkpoint, newest, ChainKey(b"x" * 32)), operation)

    assert found is not None
    assert not found.is_right(KEY)


@pytest.mark.parametrize(
    "text", [None, b"", "", "[2]", '[2,"!","sending","","succeeded","",{}]', '[2,"\u00e9","","",null,"",1]']
)
def test_what_is_no_closed_history_is_none(make_operation: MakeOperation, text: Value) -> None:
    """Somebody may have written anything there; the audit tells of it, and goes on."""
    assert read(text, make_operation()) is None


def test_a_closed_history_begins_with_its_version(make_operation: MakeOperation) -> None:
    """Statements compare it with the row's: a row that is put back to an earlier version counts as forged."""
    _, checkpoint, newest = closed(make_operation)

    assert closed_text(checkpoint, newest, KEY).startswith("[2,")
