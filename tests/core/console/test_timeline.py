"""The line of time of an order: each moment says what its row says, and no more."""

import msgspec
import pytest
from tests.samples import CHECKOUT, NOTIFICATION

from payrelay.console.rules.timeline import of_checkout, of_notification
from payrelay.core.checkouts.checkout import CLOSED_SENTENCE, CheckoutEvent, CheckoutState, advance
from payrelay.core.notifications.notification import (
    Authenticity,
    MessageType,
    NotificationKind,
    NotificationState,
    ReportedStatus,
)


def test_a_page_that_nobody_opened_has_one_moment() -> None:
    """Support must not tell a customer that the page was seen."""
    unseen = msgspec.structs.replace(CHECKOUT, state=CheckoutState.OPEN, opened_at_ms=None)

    assert [each.text.startswith("The customer was asked ") for each in of_checkout(unseen)] == [True]


def test_a_page_that_was_opened_and_has_ended_has_three_moments() -> None:
    """In the order in which they happened: asked, shown, and what came of it."""
    ended = msgspec.structs.replace(
        CHECKOUT, state=CheckoutState.COMPLETED, created_at_ms=1, opened_at_ms=2, updated_at_ms=3, payment_id="7"
    )
    moments = of_checkout(ended)

    assert [each.at_ms for each in moments] == [1, 2, 3]
    assert moments[1].text == "The customer's page was shown for the first time."
    assert ("Payment", "7") in moments[2].evidence


@pytest.mark.parametrize(("event", "texts"), [(None, 1), (CheckoutEvent.FAILED, 2), (CheckoutEvent.COMPLETED, 2)])
def test_a_closed_page_says_when_it_was_closed(event: CheckoutEvent | None, texts: int) -> None:
    """Support reads it also of a page whose form was paid after that."""
    closed = advance(msgspec.structs.replace(CHECKOUT, created_at_ms=1), CheckoutEvent.CLOSED, at_ms=2)
    assert closed is not None
    later = closed if event is None else advance(closed, event, at_ms=3)
    assert later is not None
    moments = of_checkout(later)[1:]

    assert (moments[0].at_ms, moments[0].text, len(moments)) == (2, CLOSED_SENTENCE, texts)
    assert (("Reason", "closed") in moments[-1].evidence) is (event is None)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"kind": NotificationKind.PAYMENT, "message_type": None}, "The gateway reported: "),
        (
            {"kind": NotificationKind.RECURRING, "message_type": MessageType.INSTALLMENT_FAILED},
            "The gateway reported: an installment failed",
        ),
        (
            {"kind": NotificationKind.PREAPPROVAL, "message_type": None},
            "The gateway reported: the customer lets the card be charged later",
        ),
        ({"authenticity": Authenticity.FORGED}, "A message claimed: "),
    ],
)
def test_a_notification_says_who_says_what(members: dict[str, object], said: str) -> None:
    """A forged message is nobody's word, and a preapproval is no payment."""
    told = msgspec.structs.replace(
        NOTIFICATION, authenticity=Authenticity.GENUINE, reported=ReportedStatus.SUCCEEDED, message_type=None
    )
    [moment] = of_notification(msgspec.structs.replace(told, **members))

    assert moment.text.startswith(said)


@pytest.mark.parametrize("state", [NotificationState.NEEDS_ATTENTION, NotificationState.REFUSED])
def test_a_notification_that_was_not_believed_has_its_mark(state: NotificationState) -> None:
    """It is found at a glance in a long line of time."""
    [moment] = of_notification(msgspec.structs.replace(NOTIFICATION, state=state))

    assert moment.tone == "doubt"
