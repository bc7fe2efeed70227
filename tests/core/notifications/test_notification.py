"""Where a notification may go, and what of it proves anything."""

from pathlib import Path

import msgspec
import pytest
from tests import samples
from tests.samples import NOTIFICATION, NOW_MS

from payrelay.core.notifications.notification import (
    RETRY_DELAYS_MS,
    TRANSITIONS,
    UNFINISHED,
    WAITS_FOR_MS,
    Authenticity,
    ExpectedAmount,
    Notification,
    NotificationContent,
    NotificationEvent,
    NotificationKind,
    NotificationReason,
    NotificationState,
    NotificationStep,
    ReportedStatus,
    advance,
    differs,
    needs_operator,
    payment_shown,
    step_of,
    step_of_repeat,
)
from payrelay.core.secret import Secret
from payrelay.errors import IllegalTransition

CONTENT = NotificationContent(
    kind=NotificationKind.PAYMENT,
    reported=ReportedStatus.SUCCEEDED,
    order_id="A-1",
    amount_minor=100_000,
    currency="LKR",
    payment_id="320025000001",
)
PAYMENT = msgspec.structs.replace(samples.PAYMENT, at_ms=NOW_MS)
WAIT = NotificationStep(event=NotificationEvent.PUT_OFF, reason=NotificationReason.UNKNOWN_ORDER)


def replaced(**members: object) -> Notification:
    """Gives the notification with other members."""
    return msgspec.structs.replace(NOTIFICATION, **members)


@pytest.mark.parametrize("state", NotificationState)
@pytest.mark.parametrize("event", NotificationEvent)
def test_what_the_table_lacks_is_an_error(state: NotificationState, event: NotificationEvent) -> None:
    """A step that nobody thought of must not end somewhere by chance."""
    before = replaced(state=state)
    if (state, event) in TRANSITIONS:
        assert (
            advance(before, NotificationStep(event=event, reason=NotificationReason.INFORMED), at_ms=NOW_MS).state
            is TRANSITIONS[state, event]
        )
    else:
        with pytest.raises(IllegalTransition, match=f"{state}.*{event}"):
            advance(before, NotificationStep(event=event, reason=NotificationReason.INFORMED), at_ms=NOW_MS)


def test_only_what_is_unfinished_is_worked_on_again() -> None:
    """A finished one that came back by itself would be worked on for ever."""
    for state in NotificationState:
        ended = replaced(state=state)
        for event in NotificationEvent:
            if (state, event) in TRANSITIONS:
                after = advance(ended, NotificationStep(event=event, reason=NotificationReason.INFORMED), at_ms=NOW_MS)
                assert (after.next_at_ms is not None) == (after.state in UNFINISHED)


def test_it_waits_longer_each_time_and_then_no_more() -> None:
    """Our own row is a moment away; an order of another shop's never comes, and must not cost an inquiry for ever."""
    waiting, attempts, now_ms = NOTIFICATION, 0, NOW_MS
    while waiting.state in UNFINISHED:
        waiting = advance(waiting, WAIT, at_ms=now_ms)
        attempts += 1
        if waiting.next_at_ms is not None:
            assert waiting.next_at_ms - now_ms in RETRY_DELAYS_MS
            now_ms = waiting.next_at_ms

    assert waiting.state is NotificationState.IGNORED
    assert waiting.reason is NotificationReason.UNKNOWN_ORDER
    assert WAITS_FOR_MS <= now_ms - NOW_MS <= WAITS_FOR_MS + max(RETRY_DELAYS_MS)
    assert attempts < 30


def test_it_waits_for_an_operation_as_long_as_that_is_open() -> None:
    """An outcome may be open for a week. A payment that was none of the operation's would be forgotten before."""
    after_all_ms = NOW_MS + 10 * WAITS_FOR_MS
    waiting = replaced(state=NotificationState.WAITING)

    assert {
        reason
        for reason in NotificationReason
        if advance(waiting, step_of(reason), at_ms=after_all_ms).state is NotificationState.WAITING
    } == {NotificationReason.OPERATION_UNDER_WAY}


def test_a_replay_begins_the_wait_anew() -> None:
    """An operator who has mended something must not find it given up at once."""
    old = replaced(
        state=NotificationState.IGNORED, attempts=17, next_at_ms=None, reason=NotificationReason.UNKNOWN_ORDER
    )
    later_ms = NOW_MS + 10 * WAITS_FOR_MS
    again = advance(
        old, NotificationStep(event=NotificationEvent.REPLAYED, reason=NotificationReason.REPLAYED), at_ms=later_ms
    )

    assert (again.state, again.attempts, again.next_at_ms) == (NotificationState.RECEIVED, 0, later_ms)
    assert advance(again, WAIT, at_ms=later_ms).state is NotificationState.WAITING


def test_a_repeat_wakes_only_what_it_can_change() -> None:
    """A repeat of what was applied is nothing; one of what was given up, or misjudged, is another chance."""
    applied = replaced(state=NotificationState.APPLIED, reason=NotificationReason.CHECKOUT_FINISHED)
    given_up = replaced(state=NotificationState.IGNORED, reason=NotificationReason.NOT_SHOWN)
    informed = replaced(state=NotificationState.IGNORED, reason=NotificationReason.INFORMED)
    misjudged = replaced(
        state=NotificationState.REFUSED, reason=NotificationReason.FORGED, authenticity=Authenticity.FORGED
    )

    assert step_of_repeat(applied, Authenticity.GENUINE) is None
    assert step_of_repeat(informed, Authenticity.GENUINE) is None
    assert step_of_repeat(misjudged, Authenticity.FORGED) is None
    for each in (given_up, misjudged):
        step = step_of_repeat(each, Authenticity.GENUINE)
        assert step is not None
        assert advance(each, step, at_ms=NOW_MS).state is NotificationState.RECEIVED


def test_every_reason_has_its_words_and_at_most_one_step() -> None:
    """A reason in a list must have words, and mean one thing."""
    assert len({reason.phrase for reason in NotificationReason} - {""}) == len(NotificationReason)
    assert {each.value for each in Authenticity if each is not Authenticity.GENUINE} < {*NotificationReason}
    assert step_of(NotificationReason.INFORMED) == NotificationStep(
        event=NotificationEvent.IGNORED, reason=NotificationReason.INFORMED
    )
    assert step_of(NotificationReason.OTHER_TOKEN).event is NotificationEvent.DOUBTED


def test_amount_and_currency_are_compared() -> None:
    """The signature only proves that the gateway reported some amount, not that it is the requested one."""
    assert not differs(CONTENT, ExpectedAmount(amount_minor=100_000, currency="LKR"))
    assert not differs(CONTENT, ExpectedAmount(amount_minor=None, currency="LKR"))
    assert differs(CONTENT, ExpectedAmount(amount_minor=100_001, currency="LKR"))
    assert differs(CONTENT, ExpectedAmount(amount_minor=None, currency="USD"))


@pytest.mark.parametrize(
    "members",
    [
        {"payment_id": "320025000002"},
        {"order_id": "A-2"},
        {"amount_minor": 99_999},
        {"amount_minor": None},
        {"currency": "USD"},
        {"status": "REFUNDED"},
    ],
)
def test_a_payment_that_differs_in_anything_is_another(members: dict[str, object]) -> None:
    """What is not signed may be anybody's; only the gateway's own record of exactly this counts."""
    assert payment_shown(CONTENT, [PAYMENT], frozenset()) == PAYMENT
    assert payment_shown(CONTENT, [msgspec.structs.replace(PAYMENT, **members)], frozenset()) is None


def test_a_payment_of_something_else_proves_nothing() -> None:
    """A charge's payment must not pay for a checkout under the same order as well."""
    assert payment_shown(CONTENT, [PAYMENT], frozenset({PAYMENT.payment_id})) is None


def test_without_an_id_only_a_single_one_counts() -> None:
    """Of two that are equal nobody can say which one was meant."""
    unnamed = msgspec.structs.replace(CONTENT, payment_id=None)
    second = msgspec.structs.replace(PAYMENT, payment_id="320025000002")

    assert payment_shown(unnamed, [PAYMENT], frozenset()) == PAYMENT
    assert payment_shown(unnamed, [PAYMENT, second], frozenset()) is None


def test_nothing_secret_is_printed() -> None:
    """A traceback must not show a token or a name."""
    content = msgspec.structs.replace(
        CONTENT, customer_token="CANARY1", authorization_token="CANARY2", card_holder=Secret("CANARY3")
    )

    assert "CANARY" not in repr(content)


def test_every_state_is_described() -> None:
    """An operator looks a state up where the notifications are explained."""
    page = (Path(__file__).parents[3] / "docs" / "notifications.md").read_text()

    assert [state for state in NotificationState if f"| `{state}` |" not in page] == []


@pytest.mark.parametrize(
    ("state", "reason", "reported", "is_needed"),
    [
        (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_AMOUNT, ReportedStatus.SUCCEEDED, True),
        (NotificationState.NEEDS_ATTENTION, NotificationReason.OPERATION_OPEN, ReportedStatus.SUCCEEDED, False),
        (NotificationState.IGNORED, NotificationReason.NOT_SHOWN, ReportedStatus.SUCCEEDED, True),
        (NotificationState.IGNORED, NotificationReason.UNKNOWN_PAYMENT, ReportedStatus.CHARGED_BACK, True),
        (NotificationState.IGNORED, NotificationReason.NOT_SHOWN, ReportedStatus.FAILED, False),
        (NotificationState.IGNORED, NotificationReason.UNKNOWN_ORDER, ReportedStatus.SUCCEEDED, False),
        (NotificationState.WAITING, NotificationReason.NOT_SHOWN, ReportedStatus.SUCCEEDED, False),
        (NotificationState.REFUSED, NotificationReason.FORGED, ReportedStatus.SUCCEEDED, False),
    ],
)
def test_an_operator_is_called_where_one_is_needed(
    state: NotificationState, reason: NotificationReason, reported: ReportedStatus, *, is_needed: bool
) -> None:
    """For money that nobody can prove, and never twice for the same; a report on an unknown order needs nobody."""
    assert (
        needs_operator(msgspec.structs.replace(NOTIFICATION, state=state, reason=reason, reported=reported))
        is is_needed
    )
