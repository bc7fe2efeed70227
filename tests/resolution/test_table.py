import json
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.resolution.bench import AMOUNT, ENDPOINTS, ITEMS, ORDER, Bench
from tests.resolution.table import (
    FAULTS,
    LATER,
    OPERATIONS,
    TABLE,
    End,
    Fault,
    Senseless,
    drawn,
    effects_of,
    end_of,
    sendings_of,
)

from payrelay.core.answers import Answer
from payrelay.core.payments.operation import State
from payrelay.core.payments.operation_answers import BY_PROOF
from payrelay.core.payments.proof import INQUIRIES_MIN, Control
from payrelay.errors import Code

pytestmark = pytest.mark.deep

CELLS: Final = [
    (operation, fault)
    for fault in TABLE
    for operation in OPERATIONS
    if not isinstance(end_of(operation, fault), Senseless)
]
CHARGED: Final = {
    "order_id": ORDER,
    "items": ITEMS,
    "currency": "LKR",
    "amount": float(AMOUNT),
    "custom_1": "first",
    "custom_2": None,
    "status_code": 2,
    "status_message": None,
    "md5sig": None,
    "authorization_token": None,
}
CAPTURED: Final = {
    "status_code": 2,
    "status_message": None,
    "currency": "LKR",
    "amount": float(AMOUNT),
    "captured_amount": float(AMOUNT),
    "items": ITEMS,
    "order_id": ORDER,
    "md5sig": None,
    "custom_1": "first",
    "custom_2": None,
}
PROVED_DATA: Final = {"charge": CHARGED, "capture": CAPTURED}
"""Beside ``payment_id``; of every other operation the answer has no data."""


def test_every_operation_has_its_entry_under_every_fault() -> None:
    """A fault that somebody thought of and never tried is where the money goes."""
    assert list(TABLE) == list(FAULTS)
    assert {len(ends) for ends in TABLE.values()} == {len(OPERATIONS)}
    assert all(end.words for ends in TABLE.values() for end in ends)


def test_the_table_is_drawn_whole() -> None:
    """What people read is the table that is tried."""
    entries = drawn().splitlines()
    assert len(entries) == len(TABLE) + 2
    assert {entry.count(" | ") for entry in entries} == {len(OPERATIONS)}


@pytest.mark.parametrize(("operation", "fault"), CELLS)
async def test_the_entry_holds(operation: str, fault: str, folder: Path) -> None:
    """What the table promises is what the program does: the end, the time, the answer, and one effect at most."""
    end, befalls = end_of(operation, fault), FAULTS[fault]
    assert isinstance(end, End)
    async with Bench(folder / "payrelay.db") as bench:
        flow = await bench.prepare(operation, befalls)
        first = await bench.live(operation, befalls, flow)
        await bench.resolve()
        row = await bench.newest()
        assert (row.state, bench.effects(operation)) == (end.state, effects_of(befalls, end))
        assert end.not_before_s <= bench.ended_s() <= LATER.get((operation, fault), end.by_s)
        assert bench.ended_s() > end.by_s or (operation, fault) not in LATER
        _expect_only_what_may_be_sent(bench, operation, fault)
        if end.state is State.NOT_SENT:
            _expect(first, end)
            return
        if end.state is State.NEEDS_ATTENTION:
            assert await _shown(bench) == end.shown
        last = await flow(bench.relay)
        _expect(last, end)
        if end.is_proved:
            _expect_composed(operation, last)
        if end.is_absent:
            await _expect_many_inquiries(bench)
        if end.by_s > 0 and first is not None:
            _expect(first, msgspec.structs.replace(end, http_status=202, code=_code_of_open(befalls)))
        assert bench.effects(operation) == effects_of(befalls, end)
        _expect_only_what_may_be_sent(bench, operation, fault)


def _expect(answer: Answer | None, end: End) -> None:
    assert answer is not None
    assert (answer.http_status, answer.code) == (end.http_status, end.code)
    assert json.loads(answer.body).get("error", {}).get("code") == end.code


def _code_of_open(befalls: Fault) -> Code:
    if befalls.struck in {"other_amount", "other_order"}:
        return Code.NEEDS_ATTENTION
    return Code.PENDING if befalls.struck == "pending" else Code.OUTCOME_UNKNOWN


def _expect_only_what_may_be_sent(bench: Bench, operation: str, fault: str) -> None:
    """The ledger doesn't show the sendings that the gateway itself rejected; those must not be made either."""
    sent = bench.sendings()
    assert set(sent) == {ENDPOINTS[operation]}
    assert len(sent) == sendings_of(operation, fault)


async def _shown(bench: Bench) -> str | None:
    """Gives what was observed when the operation came to need an operator."""
    alerted = [entry for entry in await bench.history() if entry.state is State.NEEDS_ATTENTION]
    return alerted[0].evidence.seen


def _expect_composed(operation: str, answer: Answer) -> None:
    document = json.loads(answer.body)
    assert (document["status"], document["msg"]) == (1, BY_PROOF)
    data = document["data"]
    if operation in PROVED_DATA:
        assert isinstance(data.pop("payment_id"), int)
    assert data == PROVED_DATA.get(operation)


async def _expect_many_inquiries(bench: Bench) -> None:
    history = await bench.history()
    failed_at = next(number for number, entry in enumerate(history) if entry.state is State.FAILED)
    controls = [entry.evidence.control for entry in history[: failed_at + 1]]
    assert controls.count(Control.FOUND) >= INQUIRIES_MIN
