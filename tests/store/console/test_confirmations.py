"""What operators are asked to confirm, in both databases."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.databases import sqlite_url
from tests.store.console.samples import ADA, CONFIRMATION, SESSION, acts_of, confirmations_of, did, operators_of

from payrelay.clock import Clock
from payrelay.core.operators.confirmations import (
    SHOWN_MS,
    Confirmation,
    ConfirmationState,
    SmallRefunds,
    next_of_confirmation,
    without_factor,
)
from payrelay.core.operators.operator import NotRecent
from payrelay.core.operators.roles import Act, Role
from payrelay.errors import Refusal
from payrelay.flows.operators.parts import next_of
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.operators.acts import SESSION_OVER
from payrelay.store.operators.confirmations import PROPOSER_LOST_ROLE
from payrelay.store.operators.operators import OperatorChange

SUBJECT = CONFIRMATION.subject
SMALL = without_factor(CONFIRMATION)
BEGUN = next_of_confirmation(CONFIRMATION, 20, state=ConfirmationState.BEGUN, confirmed_by="opr_1", reason="why")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of each of the databases."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """Opens it."""
    database = await open_database(url, clock=Clock(), owner=True)
    yield database
    await database.close()


async def test_a_step_and_its_line_are_stored_together_and_once(database: Database) -> None:
    """The second of two equal steps stores neither."""
    confirmations = confirmations_of(database)
    await confirmations.add(CONFIRMATION)
    line = did(act=Act.REFUND, subject=SUBJECT)

    assert await confirmations.change(BEGUN, line, seen=0) == msgspec.structs.replace(BEGUN, act=1)
    assert await confirmations.change(BEGUN, line, seen=None) is None
    assert await confirmations.get("cnf_1") == msgspec.structs.replace(BEGUN, act=1)
    assert [each.number for each in await acts_of(database).about(SUBJECT, 10)] == [1]
    assert await acts_of(database).newest_named() == 1


async def test_a_line_that_nobody_saw_keeps_the_step_from_being_made(database: Database) -> None:
    """Lines about other things don't."""
    confirmations, acts = confirmations_of(database), acts_of(database)
    await confirmations.add(CONFIRMATION)
    await acts.write_line(did(act=Act.ADD_NOTE, subject="operation/op_2"), 0)
    await acts.write_line(did(act=Act.ADD_NOTE, subject=SUBJECT), 0)

    assert await confirmations.change(BEGUN, did(act=Act.REFUND, subject=SUBJECT), seen=1) is None
    assert await acts.write_line(did(act=Act.ADD_NOTE, subject=SUBJECT), 1) is None
    assert await confirmations.get("cnf_1") == CONFIRMATION
    assert await confirmations.change(BEGUN, did(act=Act.REFUND, subject=SUBJECT), seen=2) is not None


async def test_small_refunds_that_come_at_one_moment_are_added_up(database: Database) -> None:
    """Of each operator, each currency, and since the operator showed the second factor, in whichever session.

    What was refused gave nothing back, and what the second factor was shown for is no small one.
    """
    operators, confirmations = operators_of(database), confirmations_of(database)
    await operators.carry_out(OperatorChange(at_ms=1, act=did(), added=ADA, session=SESSION))
    newer = msgspec.structs.replace(SESSION, id="ses_2", token_hash="t")
    await operators.carry_out(OperatorChange(at_ms=1, act=did(), session=newer))
    small = SmallRefunds("LKR", 300)
    others: dict[str, dict[str, object]] = {
        "before": {"act": 2},
        "second factor": {"fields": "{}"},
        "refused": {"state": ConfirmationState.REFUSED},
        "bobs": {"confirmed_by": "opr_2"},
        "dollars": {"currency": "USD"},
        "capture": {"act_name": Act.CAPTURE},
    }
    for name, members in others.items():
        counted = {"amount_minor": 300, "currency": "LKR", "confirmed_by": ADA.id, "state": ConfirmationState.DONE}
        other = {"id": f"cnf_{name}", "act": 9, "fields": SMALL.fields} | counted | members
        await confirmations.add(msgspec.structs.replace(CONFIRMATION, **other))
    shown = [
        msgspec.structs.replace(CONFIRMATION, id=f"cnf_s{number}", amount_minor=100, currency="LKR")
        for number in range(6)
    ]
    for each in shown:
        await confirmations.add(each)

    async def confirmed(each: Confirmation) -> bool:
        begun = next_of_confirmation(each, 20, state=ConfirmationState.BEGUN, confirmed_by=ADA.id)
        line = did(act=Act.REFUND, subject=f"operation/{each.id}", operator_id=ADA.id, session_id=SESSION.id)
        try:
            return await confirmations.change(begun, line, seen=0, small=small) is not None
        except NotRecent:
            return False

    assert sum(await asyncio.gather(*map(confirmed, shown))) == 3
    read = [await confirmations.get(each.id) for each in shown]
    begun = next(each for each in read if each is not None and each.state is ConfirmationState.BEGUN)
    again = next_of_confirmation(begun, 30, state=ConfirmationState.BEGUN)
    line = did(act=Act.REFUND, subject="operation/cnf_s", operator_id=ADA.id, session_id=SESSION.id)
    assert await confirmations.change(again, line, seen=None, small=small), "carried on, it isn't counted twice"


async def test_who_proposed_and_who_confirms_may_do_it_at_that_moment(database: Database) -> None:
    """Whoever lost the role, or the session, since the page was shown does nothing; nor does a proposal of theirs."""
    operators, confirmations = operators_of(database), confirmations_of(database)
    bob = msgspec.structs.replace(ADA, id="opr_2", email="bob@shop.example", provider_subject=None)
    their = msgspec.structs.replace(SESSION, id="ses_2", operator_id=bob.id, token_hash="t")
    for operator, session in ((ADA, SESSION), (bob, their)):
        await operators.carry_out(OperatorChange(at_ms=1, act=did(), added=operator, session=session))
    await confirmations.add(CONFIRMATION)
    proposed = next_of_confirmation(CONFIRMATION, 20, state=ConfirmationState.PROPOSED, proposed_by=ADA.id)
    line = did(20, act=Act.PROPOSE, subject=SUBJECT, operator_id=ADA.id, session_id=SESSION.id)
    stored = await confirmations.change(proposed, line, seen=0)
    assert stored is not None
    begun = next_of_confirmation(stored, 21, state=ConfirmationState.BEGUN, confirmed_by=bob.id)
    confirms = did(21, act=Act.REFUND, subject=SUBJECT, operator_id=bob.id, session_id=their.id)
    lines = len(await acts_of(database).before(None, 100))
    refused = []
    for role, whose, ended in ((Role.SUPPORT, ADA, None), (Role.SUPPORT, bob, None), (Role.ADMIN, bob, their.id)):
        before = await operators.get(whose.id)
        assert before is not None
        lesser = next_of(before, 22, role=role)
        await operators.carry_out(OperatorChange(at_ms=22, act=did(), changed=lesser, ends_session=ended))
        with pytest.raises(Refusal) as refusal:
            await confirmations.change(begun, confirms, seen=stored.act)
        refused.append(refusal.value.msg)
        await operators.carry_out(OperatorChange(at_ms=23, act=did(), changed=next_of(lesser, 23, role=Role.ADMIN)))

    assert refused == [PROPOSER_LOST_ROLE, "the role support may not do this: refund", SESSION_OVER]
    assert len(await acts_of(database).before(None, 100)) == lines + 6
    assert await confirmations.get("cnf_1") == stored


async def test_only_what_waits_for_a_second_person_is_listed(database: Database) -> None:
    """Oldest first."""
    confirmations = confirmations_of(database)
    for number in (3, 1, 2):
        added = msgspec.structs.replace(CONFIRMATION, id=f"cnf_{number}", made_at_ms=number)
        await confirmations.add(added)
        if number != 2:
            proposed = next_of_confirmation(added, 20, state=ConfirmationState.PROPOSED, proposed_by="opr_1")
            await confirmations.change(proposed, did(act=Act.PROPOSE, subject=SUBJECT), seen=None)

    assert [each.id for each in await confirmations.proposed()] == ["cnf_1", "cnf_3"]


async def test_what_nobody_confirmed_is_forgotten(database: Database) -> None:
    """Only that: what has begun stays."""
    confirmations = confirmations_of(database)
    begun = msgspec.structs.replace(CONFIRMATION, id="cnf_2")
    for each in (CONFIRMATION, begun):
        await confirmations.add(each)
    changed = next_of_confirmation(begun, 20, state=ConfirmationState.BEGUN)
    await confirmations.change(changed, did(act=Act.REFUND, subject=SUBJECT), seen=None)
    await confirmations.add(msgspec.structs.replace(CONFIRMATION, id="cnf_3", made_at_ms=11 + SHOWN_MS))

    found = [await confirmations.get(f"cnf_{number}") for number in (1, 2, 3)]
    assert [each is not None for each in found] == [False, True, True]


async def test_what_came_of_it_is_stored_once(database: Database) -> None:
    """The process that was slower stores nothing over it."""
    confirmations = confirmations_of(database)
    await confirmations.add(CONFIRMATION)
    begun = await confirmations.change(BEGUN, did(act=Act.REFUND, subject=SUBJECT), seen=None)
    assert begun is not None
    done = next_of_confirmation(begun, 30, state=ConfirmationState.DONE, operation_id="op_2")

    assert await confirmations.end(done)
    assert not await confirmations.end(msgspec.structs.replace(done, said="otherwise"))
    assert await confirmations.get("cnf_1") == done


@pytest.mark.parametrize("column", ["amount_minor = 500", "state = 'proposed'", "fields = '{}'", "proposed_by = 'x'"])
async def test_a_row_that_somebody_else_wrote_is_not_there(database: Database, column: str) -> None:
    """Who can write to the database can't have a colleague confirm another amount."""
    confirmations = confirmations_of(database)
    await confirmations.add(CONFIRMATION)
    tamper = query(f"UPDATE console_confirmations SET {column} RETURNING id")  # noqa: S608 - constant texts
    await database.write(all_rows(Statement(tamper, ())))

    assert await confirmations.get("cnf_1") is None
    assert await confirmations.proposed() == []
