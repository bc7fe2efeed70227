"""What a high-water mark names, and what it counts for on a database."""

from typing import Final, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.database.marks import (
    LOST_TOLERANCE_MS,
    MARK_PURPOSE,
    OPERATIONS_MAX,
    Mark,
    MarkedAnchor,
    MarkedCheckout,
    MarkedOperation,
    MarkMemory,
    MarksShown,
    MarkStanding,
    Missing,
    ReadMark,
    lost_since_ms,
    missing_incarnation,
    read_mark,
    standing_of,
    written_mark,
)
from payrelay.core.keyed_digest import DigestKey

KEY: Final = DigestKey(b"c" * 32, MARK_PURPOSE)
OTHER_KEY: Final = DigestKey(b"d" * 32, MARK_PURPOSE)
MARK: Final = Mark(
    database="one",
    incarnation=1,
    written_at_ms=1_000,
    operations=(MarkedOperation("op_1", 2, "hash", 900),),
    checkout=MarkedCheckout("chk_1", 1, 950),
    anchor=MarkedAnchor("7:digest", 800),
)
AT_ONCE_MAX: Final = 8
"""Commits under way at one moment in the law below; each may be acknowledged before or after the others."""


def identity_of(*reasons: Beginning, began_at_ms: int = 2_000) -> DatabaseIdentity:
    """Gives the identity of the database ``one``, with further incarnations that began for these reasons."""
    lost = LostWindow(since_ms=0, until_ms=began_at_ms)
    further = (
        Incarnation(number=number, reason=reason, began_at_ms=began_at_ms, lost=lost)
        for number, reason in enumerate(reasons, 2)
    )
    first = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
    return DatabaseIdentity(id="one", incarnations=(first, *further))


class Commit(NamedTuple):
    """One version of an operation."""

    operation: str
    version: int


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Commit], list[Commit]]:
    """Draws commits in the order in which they were made, and in that in which they were acknowledged."""
    made: list[Commit] = []
    newest: dict[str, int] = {}
    for number in draw(st.lists(st.integers(0, 90), max_size=150)):
        operation = f"op_{number}"
        newest[operation] = newest.get(operation, 0) + 1
        made.append(Commit(operation, newest[operation]))
    delays = draw(st.lists(st.integers(0, AT_ONCE_MAX - 1), min_size=len(made), max_size=len(made)))
    order = sorted(range(len(made)), key=lambda index: (index + delays[index], index))
    return made, [made[index] for index in order]


def marked(acknowledged: list[Commit]) -> set[Commit]:
    """Gives what the mark of a process names that was told of these commits."""
    memory = MarkMemory()
    for each in acknowledged:
        memory.note_operation(MarkedOperation(each.operation, each.version, "", 0))
    return {Commit(each.id, each.version) for each in memory.mark("one", 1, 0).operations}


@given(histories(), st.data())
def test_a_prefix_that_has_all_that_a_mark_names_has_all_that_was_acknowledged(
    history: tuple[list[Commit], list[Commit]], data: st.DataObject
) -> None:
    """Otherwise a restored copy could lack the commit of a charge, and still be taken for whole."""
    made, acknowledged = history
    told = acknowledged[: data.draw(st.integers(0, len(acknowledged)))]
    prefix = set(made[: data.draw(st.integers(0, len(made)))])

    assert (marked(told) <= prefix) == (set(told) <= prefix)


@given(histories(), st.data())
def test_a_kill_at_any_moment_never_looks_as_if_commits_were_lost(
    history: tuple[list[Commit], list[Commit]], data: st.DataObject
) -> None:
    """Whichever of the writes was the last: the database has all that it had acknowledged by then, and more."""
    made, acknowledged = history
    killed_at = data.draw(st.integers(0, len(acknowledged)))
    written_at = data.draw(st.integers(0, killed_at))
    on_disk = set(made[: max((made.index(each) + 1 for each in acknowledged[:killed_at]), default=0)])

    assert marked(acknowledged[:written_at]) <= on_disk


def test_a_mark_names_as_many_commits_as_a_pool_can_have_under_way() -> None:
    """The newest commit may be acknowledged first of all, and the 199 others of that moment must not push it out."""
    memory = MarkMemory(commits_max=200)
    for number in reversed(range(200)):
        memory.note_operation(MarkedOperation(f"op_{number}", 1, "hash", number))
    assert "op_199" in {each.id for each in memory.mark("one", 1, 0).operations}


def test_a_mark_names_the_newest_of_each_kind() -> None:
    """It stays small however long a process runs; an older version of something takes nothing out of it."""
    memory = MarkMemory()
    memory.note_anchor(MarkedAnchor("7:digest", 800))
    for number in range(OPERATIONS_MAX + 6):
        memory.note_operation(MarkedOperation(f"op_{number}", 2, "hash", number))
    memory.note_operation(MarkedOperation("op_10", 1, "earlier", 0))
    for checkout in (MarkedCheckout("chk_1", 2, 1), MarkedCheckout("chk_1", 1, 0)):
        memory.note_checkout(checkout)

    mark = memory.mark("one", 1, 1_000)
    assert [each.id for each in mark.operations] == [*(f"op_{n}" for n in range(6, 70) if n != 10), "op_10"]
    assert {each.version for each in mark.operations} == {2}
    assert (mark.checkout, mark.anchor) == (MarkedCheckout("chk_1", 2, 1), MarkedAnchor("7:digest", 800))
    memory.note_checkout(MarkedCheckout("chk_2", 1, 2))
    assert memory.mark("one", 1, 0).checkout == MarkedCheckout("chk_2", 1, 2)
    memory.forget()
    assert memory.mark("one", 1, 1_000) == Mark(database="one", incarnation=1, written_at_ms=1_000)


def test_an_anchor_alone_is_no_commit_of_this_process() -> None:
    """It may be from long ago, and an older mark that names more must not make room for it."""
    memory = MarkMemory()
    memory.note_anchor(MarkedAnchor("7:digest", 800))
    was_empty = memory.is_empty
    memory.note_checkout(MarkedCheckout("chk_1", 1, 0))

    assert (was_empty, memory.is_empty) == (True, False)


def test_a_mark_is_read_as_it_was_written() -> None:
    """The next process must find exactly what this one was told of."""
    assert read_mark(written_mark(MARK, KEY), KEY) == ReadMark(MARK, is_genuine=True)


@given(st.integers(0), st.binary(max_size=8))
def test_what_is_no_whole_mark_shows_nothing(length: int, junk: bytes) -> None:
    """A loss of power may cut a file off, or leave it empty; that must not keep a service from its work."""
    whole = written_mark(MARK, KEY)
    found = whole[: length % len(whole)] + junk

    assert read_mark(found, KEY) is None or found.strip() == whole


@pytest.mark.parametrize("begun", [b'{"mark":', b'{"mark":{"x":'])
def test_a_file_that_is_deeper_than_any_mark_shows_nothing(begun: bytes) -> None:
    """Who can write to the folder must not be able to stop the reading of all marks."""
    assert read_mark(begun + b"[" * 100_000, KEY) is None


def test_a_mark_that_somebody_else_wrote_is_seen_to_be_forged() -> None:
    """Who can write to the folder must not be able to stop the service in the name of its own database."""
    read = read_mark(written_mark(MARK, OTHER_KEY), KEY)
    assert read == ReadMark(MARK, is_genuine=False)
    changed = written_mark(MARK, KEY).replace(b"op_1", b"op_2")
    assert standing_of(read_mark(changed, KEY) or read, identity_of()) is MarkStanding.FORGED
    assert standing_of(read, identity_of()) is MarkStanding.FORGED


@pytest.mark.parametrize(
    ("database", "identity", "standing"),
    [
        ("one", identity_of(), MarkStanding.COUNTS),
        ("one", identity_of(Beginning.RECOVERED), MarkStanding.RECOVERED),
        ("one", identity_of(Beginning.RECOVERED, began_at_ms=500), MarkStanding.RECOVERED),
        ("one", identity_of(Beginning.COPIED), MarkStanding.COUNTS),
        ("one", identity_of(Beginning.COPIED, Beginning.RECOVERED), MarkStanding.RECOVERED),
        ("two", identity_of(), MarkStanding.FOREIGN),
        ("two", identity_of(Beginning.COPIED), MarkStanding.FOREIGN),
        ("two", identity_of(Beginning.RECOVERED), MarkStanding.RECOVERED),
        ("two", identity_of(Beginning.RECOVERED, began_at_ms=500), MarkStanding.FOREIGN),
    ],
)
def test_a_mark_counts_until_a_recovery_accounts_for_it(
    database: str, identity: DatabaseIdentity, standing: MarkStanding
) -> None:
    """A recovery must end the stop for good, and a copy of the database must lack nothing."""
    mark = msgspec.structs.replace(MARK, database=database)

    assert standing_of(ReadMark(mark, is_genuine=database == "one"), identity) is standing


def test_an_incarnation_that_the_database_does_not_know_of_is_missing() -> None:
    """A backup from before a recovery brings the time back in which the lost commits counted as there."""
    later = msgspec.structs.replace(MARK, incarnation=2)

    assert missing_incarnation(later, identity_of()) == (Missing("incarnation 2 of the database", 1_000),)
    assert missing_incarnation(later, identity_of(Beginning.RECOVERED)) == ()
    assert standing_of(ReadMark(later, is_genuine=True), identity_of()) is MarkStanding.COUNTS


def test_the_reason_names_what_is_missing() -> None:
    """An operator looks the named operation up at the gateway; a number alone would help nobody."""
    nothing = MarksShown(read=1, newest_at_ms=1_000, missing=(), foreign=(), unusable=("forged.mark",))
    assert nothing.reason is None
    one = msgspec.structs.replace(nothing, missing=(Missing("operation op_1 in version 2", 900),))
    assert one.reason == "it lacks what a process was told of: operation op_1 in version 2"
    two = msgspec.structs.replace(one, missing=one.missing * 2)
    assert two.reason == "it lacks what a process was told of: operation op_1 in version 2, and 1 more"
    foreign = msgspec.structs.replace(nothing, foreign=("a.mark",))
    assert foreign.reason == "there is a mark of another database, whose commits are not here: a.mark"
    assert msgspec.structs.replace(nothing, found_before="it lacked something").reason == "it lacked something"


def test_commits_may_be_lost_from_the_newest_one_on_that_is_there() -> None:
    """The clock that dated it may have been wrong; where nothing is there, nobody can tell."""
    assert lost_since_ms(1_000_000) == 1_000_000 - LOST_TOLERANCE_MS
    assert lost_since_ms(None) is None


@pytest.mark.parametrize(
    ("copied", "marked", "told", "since"),
    [
        (None, None, None, None),
        (50, None, None, 50),
        (50, None, 70, 70),
        (50, 40, 70, 40),
        (None, 40, 30, 30),
        (None, 40, None, 40),
        (None, None, 70, 70),
    ],
)
def test_an_operators_word_goes_before_a_copys_and_hides_nothing_that_marks_name(
    copied: int | None, marked: int | None, told: int | None, since: int | None
) -> None:
    """Whoever types too late a time would have requests carried out again that a mark shows to be lost."""
    shown = MarksShown(
        read=0, newest_at_ms=None, missing=(), foreign=(), unusable=(), lost_since_ms=marked, copied_since_ms=copied
    )
    assert shown.since_ms(told) == since
