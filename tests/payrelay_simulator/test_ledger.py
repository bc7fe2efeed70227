from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator import Caller, Clock, ControlError, DemoWorld, LedgerEntry, Simulator, Switches, demo_world
from payrelay_simulator.chargebacks import charge_back, fail_refund, win_chargeback
from payrelay_simulator.ledger import Ledger, LedgerLine
from payrelay_simulator.state import FIRST_REFUND_ID

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["charge", "capture", "refund", "retry", "cancel", "time", "chargeback", "won", "failed"]),
        st.integers(1, 9_000),
    )
)
REFUNDS = st.builds(
    Switches,
    rate_limit_calls=st.just(0),
    over_refund=st.sampled_from(["refused", "accepted"]),
    charged_back_refund=st.sampled_from(["refused", "accepted"]),
)


def take(caller: Caller, demo: DemoWorld, simulator: Simulator, step: tuple[str, int]) -> None:
    """Do one thing that may or may not succeed."""
    kind, number = step
    charge = {"order_id": "O", "items": "I", "currency": "LKR", "amount": number, "customer_token": demo.customer_token}
    bodies: dict[str, dict[str, object]] = {
        "payment/charge": charge,
        "payment/capture": {"authorization_token": demo.authorization_token, "amount": number},
        "payment/refund": {"payment_id": demo.paid_payment_id, "description": "x", "amount": f"{number}.00"},
        "subscription/retry": {"subscription_id": demo.failed_subscription_id},
        "subscription/cancel": {"subscription_id": demo.active_subscription_id},
    }
    later: dict[str, Callable[[], object]] = {
        "time": lambda: simulator.world.clock.advance(number),
        "chargeback": lambda: charge_back(simulator.world, demo.paid_payment_id, amount_cents=number),
        "won": lambda: win_chargeback(simulator.world, demo.paid_payment_id),
        "failed": lambda: fail_refund(simulator.world, FIRST_REFUND_ID),
    }
    if kind in later:
        with suppress(ControlError):
            later[kind]()
        return
    path = next(path for path in bodies if path.endswith(kind))
    caller.post(path, bodies[path])


def money_in(entries: tuple[LedgerEntry, ...]) -> int:
    """Return what came in and stayed, by the ledger."""
    signs = {"charge": 1, "capture": 1, "installment": 1, "retry": 1, "refund": -1, "refund_reversal": 1}
    signs |= {"chargeback": -1, "chargeback_reversal": 1}
    return sum(signs.get(entry.kind, 0) * entry.amount_cents for entry in entries)


@given(STEPS, REFUNDS)
def test_ledger_and_records_agree_whatever_happens(steps: list[tuple[str, int]], switches: Switches) -> None:
    """The sum of the ledger is the sum of the payments, also where money went back twice: a test may believe either."""
    simulator = Simulator(clock=Clock.standing(), switches=switches)
    demo, caller = demo_world(simulator), Caller(simulator.world)
    for step in steps:
        take(caller, demo, simulator, step)

    entries = simulator.ledger()
    payments = simulator.world.state.payments.values()
    kept = sum(each.amount_cents - each.refunded_cents - each.charged_back_cents for each in payments)
    assert money_in(entries) == kept
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))


def test_entries_are_paged_by_number() -> None:
    """A reader can ask for what is new since it last looked."""
    ledger, at = Ledger(), datetime(2026, 1, 1, tzinfo=UTC)
    line = LedgerLine(kind="charge", merchant_id="m", order_id="o", amount_cents=1, currency="LKR")
    for arrival in range(5):
        ledger.enter(at, line, arrival=arrival)

    assert [entry.number for entry in ledger.entries(after=2, count=2)] == [3, 4]


def test_entry_names_the_call_that_caused_it(caller: Caller, charge_body: dict[str, object]) -> None:
    """Cause and effect can be joined through the arrival number."""
    outcome = caller.post("payment/charge", charge_body)

    assert [entry.arrival for entry in outcome.entries] == [outcome.arrival]
