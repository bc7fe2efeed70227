"""What a process remembers of acknowledged commits, and stores again in a database that lacks them."""

from typing import Any, Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.store.conftest import CHAIN_KEY, CHARGE, EVIDENCE, RETENTION, Tamper

from payrelay.core.answers import Answer
from payrelay.core.calls import Refund
from payrelay.core.payments.operation import Event, Kind, Operation, State, advance
from payrelay.store.engine.database import Statement, Unit, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.remembered import KEPT_MS, RememberedCommit, RememberedCommits

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported
EVENTS: Final = query("SELECT id, type FROM outbox ORDER BY id")


class Outliving:
    """A process that remembers, and whose database loses all that was committed."""

    def __init__(self, book: Book, tamper: Tamper) -> None:
        self.book = book
        self.remembered = RememberedCommits(100)
        self.journal = book.journal = self._journal(self.remembered)
        self._tamper = tamper

    def another_process(self) -> Journal:
        """Gives the journal of a process that remembers nothing."""
        return self._journal(None)

    def _journal(self, remembered: RememberedCommits | None) -> Journal:
        database = self.book.database
        seal = Seal((b"k" * 32,))
        return Journal(database, seal, digests_of(database), chain_key=CHAIN_KEY, remembered=remembered)

    async def answered(self, number: int, answer: Answer, **members: object) -> Operation:
        """Makes an operation that the gateway has answered."""
        operation = self.book.new(number, **members)
        await self.book.accept(operation)
        done: Operation = await self.book.advance(operation, Event.SUCCEEDED, answer)
        return done

    async def lose(self, *, but_versions: int = 0) -> None:
        """Loses everything, but for the first commits that are remembered."""
        kept = list(self.remembered._commits)[:but_versions]
        await self._tamper("DELETE FROM outbox; DELETE FROM history; DELETE FROM operations;")
        for commit in kept:
            assert await self.book.database.write(commit.again())

    async def events(self) -> list[tuple[object, ...]]:
        """Gives the events that wait for their places in the feed."""
        return [tuple(row) for row in await self.book.database.read(all_rows(Statement(EVENTS, ())))]


@pytest.fixture
def outliving(book: Book, tamper: Tamper) -> Outliving:
    """Gives the process."""
    return Outliving(book, tamper)


async def test_an_answered_operation_comes_back_as_it_was(outliving: Outliving, answer: Answer) -> None:
    """Its client repeats the request, and must be told what it was told before. Receivers know its event by the id."""
    done, journal = await outliving.answered(1, answer, state=State.SENDING), outliving.journal
    history, events = await journal.history(done.id), await outliving.events()
    await outliving.lose()

    assert await journal.bring_back() == [done]
    assert (await journal.get(done.id), await journal.history(done.id)) == (done, history)
    assert (await journal.answer_of(done.id), await journal.call_of(done.id)) == (answer, CHARGE)
    assert events
    assert await outliving.events() == events
    assert await journal.bring_back() == []


async def test_a_refund_comes_back_too(outliving: Outliving, answer: Answer) -> None:
    """What it changed of cached readings is changed again with it."""
    operation = outliving.book.new(1, kind=Kind.REFUND, state=State.SENDING)
    await outliving.book.accept(operation, call=Refund(payment_id="320025071278", description="late"))
    done = await outliving.book.advance(operation, Event.SUCCEEDED, answer)
    await outliving.lose()

    assert await outliving.journal.bring_back() == [done]


async def test_what_was_open_does_not_come_back(outliving: Outliving) -> None:
    """Its outcome is not known here. A look at the gateway says more than a row whose newer versions may be lost."""
    operation = outliving.book.new(1)
    await outliving.book.accept(operation)
    await outliving.lose()

    assert await outliving.journal.bring_back() == []
    assert await outliving.journal.get(operation.id) is None


async def test_only_the_answer_may_be_lost(outliving: Outliving, answer: Answer) -> None:
    """A standby is seconds behind: it has the intent."""
    done = await outliving.answered(1, answer, state=State.SENDING)
    await outliving.lose(but_versions=1)

    assert await outliving.journal.bring_back() == [done]
    assert await outliving.journal.answer_of(done.id) == answer


async def test_nothing_takes_the_place_of_what_is_there(outliving: Outliving, answer: Answer) -> None:
    """A repeat of the request may be an operation already: a claim has one holder."""
    done = await outliving.answered(1, answer, state=State.SENDING)
    await outliving.lose()
    outliving.book.journal = outliving.another_process()
    await outliving.book.accept(outliving.book.new(1, id="op_" + "9" * 26, state=State.HELD))

    assert await outliving.journal.bring_back() == []
    assert await outliving.journal.get(done.id) is None


async def test_what_went_on_otherwise_stays(outliving: Outliving, answer: Answer) -> None:
    """Another process has resolved it since: two histories can't be one."""
    done = await outliving.answered(1, answer, state=State.SENDING)
    await outliving.lose(but_versions=1)
    first = await outliving.journal.get(done.id)
    assert first is not None
    other, entry = advance(first, Event.LOST, at_ms=3_000, retention=RETENTION, evidence=EVIDENCE)
    other = await outliving.another_process().record(other, entry, None)

    assert await outliving.journal.bring_back() == []
    assert await outliving.journal.get(done.id) == other


def test_only_the_newest_commits_are_remembered(book: Book) -> None:
    """A service runs for months, and must not grow; an embedded database is outlived by nobody."""

    def again() -> Unit[bool]:
        yield from ()
        return True

    remembered, off, kept = RememberedCommits(2), RememberedCommits(), list[list[str]]()
    for number, at_ms in enumerate((0, 1, 2, 2 + KEPT_MS, 3 + KEPT_MS)):
        commit = RememberedCommit(msgspec.structs.replace(book.new(1), id=str(number)), at_ms, again)
        off.note(commit)
        remembered.note(commit)
        kept.append([each.operation.id for each in remembered._commits])

    assert kept == [["0"], ["0", "1"], ["1", "2"], ["2", "3"], ["3", "4"]]
    assert not off._commits
