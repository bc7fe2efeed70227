from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from payrelay_simulator import DEFAULT_MERCHANT, ControlError, Switches
from payrelay_simulator.notification_faults import NotificationArguments, NotificationRule, NotificationSchedule
from payrelay_simulator.notifications import Attempt, Message, Notifications
from payrelay_simulator.records import Merchant
from payrelay_simulator.signature import md5sig

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return a moment after the beginning."""
    return NOW + timedelta(seconds=seconds)


def a_message(order_id: str = "A", status_code: str = "2", **more: str) -> Message:
    """Return a message about an order."""
    fields = {
        "merchant_id": DEFAULT_MERCHANT.merchant_id,
        "order_id": order_id,
        "payment_id": "320025000001",
        "payhere_amount": "10.00",
        "payhere_currency": "LKR",
        "status_code": status_code,
        "custom_1": "",
        **more,
    }
    return Message(flow="payment", notify_url="http://shop.example/notify", fields=fields)


@pytest.fixture
def notifications() -> Notifications:
    """Return an empty desk of the default merchant."""
    return Notifications((DEFAULT_MERCHANT,))


def order(notifications: Notifications, fault: str, **args: Any) -> None:  # noqa: ANN401 - arguments of all kinds
    """Order one misbehaviour for whatever comes next."""
    notifications.faults.add_rules(NotificationRule(fault=fault, args=NotificationArguments(**args)))


def is_genuine(fields: dict[str, str]) -> bool:
    """Say whether the signature is right."""
    names = ("merchant_id", "order_id", "payhere_amount", "payhere_currency", "status_code")
    secret = DEFAULT_MERCHANT.merchant_secret
    return fields["md5sig"] == md5sig(*(fields[name] for name in names), merchant_secret=secret)


def sent(notifications: Notifications, seconds: float, *, http_status: int = 200) -> list[str]:
    """Send what is due and return the orders in their sequence; what that lets go is sent, too."""
    orders: list[str] = []
    while due := notifications.take_due(at(seconds)):
        for each in due:
            orders.append(each.order_id)
            notifications.note(each.number, Attempt(at=at(seconds), http_status=http_status), Switches())
    return orders


def test_well_behaved_notification_goes_at_once_and_once(notifications: Notifications) -> None:
    """Without an order nothing is late, lost or doubled; the signature stands behind the status."""
    (number,) = notifications.plan(NOW, a_message())

    assert (sent(notifications, 0), sent(notifications, 1_000)) == (["A"], [])
    record = notifications.find(number)
    assert (record.state, record.attempts[0].http_status, is_genuine(record.fields)) == ("delivered", 200, True)
    assert list(record.fields)[5:7] == ["status_code", "md5sig"]


@pytest.mark.parametrize(
    ("status_code", "signature"),
    [
        ("2", "340FD7FB0227389003098695F91ADB87"),
        ("0", "AB4FB1B4CC0CE874FB45BA3525DD677B"),
        ("-1", "7C2A2EFEC0E4D4B04342D15F3779ECD1"),
        ("-2", "3FDC8692814B35AA989C9496E860F290"),
        ("-3", "88C4D80DCAB1A61E8D952BEAEFE8E2ED"),
        ("3", "A72D1C23477DE3870E665C61DFF723C6"),
    ],
)
def test_signatures_computed_elsewhere_agree(status_code: str, signature: str) -> None:
    """The test vectors come from neither this code nor that of a client."""
    merchant = Merchant(app_id="a", app_secret="s", merchant_id="1211149", merchant_secret="MzExMTIyMjMzMw==")
    fields = {"merchant_id": "1211149", "order_id": "Order12345", "payhere_amount": "1000.00"}

    signed = Notifications((merchant,)).signed({**fields, "payhere_currency": "LKR", "status_code": status_code})

    assert signed["md5sig"] == signature


def test_nobody_is_told_without_an_address(notifications: Notifications) -> None:
    """A charge need not name a notify_url."""
    message = Message(flow="charge", notify_url="", fields=a_message().fields)

    assert (notifications.plan(NOW, message), notifications.total) == ((), 0)


def test_duplicate_goes_out_again(notifications: Notifications) -> None:
    """The copies are the same to the letter, and know whose copies they are."""
    order(notifications, "duplicate", copies=2, wait_s=10)
    numbers = notifications.plan(NOW, a_message())

    assert [sent(notifications, seconds) for seconds in (0, 9, 10, 20)] == [["A"], [], ["A"], ["A"]]
    assert [notifications.find(number).copy_of for number in numbers] == [None, 1, 1]
    assert len({str(notifications.find(number).fields) for number in numbers}) == 1


@pytest.mark.parametrize(("args", "seconds"), [({}, 60), ({"wait_s": 5}, 5), ({"wait_s": 0}, 0)])
def test_late_goes_out_later(notifications: Notifications, args: dict[str, Any], seconds: float) -> None:
    """It waits on the simulator's clock."""
    order(notifications, "late", **args)
    notifications.plan(NOW, a_message())

    assert (sent(notifications, seconds - 1), sent(notifications, seconds)) == ([], ["A"])


def test_held_waits_until_it_is_released(notifications: Notifications) -> None:
    """A test decides the moment itself."""
    order(notifications, "held")
    notifications.plan(NOW, a_message())
    assert sent(notifications, 1e6) == []

    assert (notifications.release(at(1e6)), sent(notifications, 1e6)) == (1, ["A"])


def test_reordered_goes_after_the_next(notifications: Notifications) -> None:
    """The later news comes first."""
    order(notifications, "reordered")
    for order_id in ("A", "B", "C"):
        notifications.plan(NOW, a_message(order_id))

    assert sent(notifications, 0) == ["B", "C", "A"]


def test_reordered_goes_alone_after_a_while(notifications: Notifications) -> None:
    """Where nothing else comes it is only late."""
    order(notifications, "reordered", behind=2, wait_s=30)
    notifications.plan(NOW, a_message("A"))
    notifications.plan(NOW, a_message("B"))

    assert [sent(notifications, seconds) for seconds in (0, 29, 30)] == [["B"], [], ["A"]]


def test_forged_has_a_wrong_signature(notifications: Notifications) -> None:
    """In form it is right, and it never verifies."""
    order(notifications, "forged")
    (number,) = notifications.plan(NOW, a_message())

    fields = notifications.find(number).fields
    assert (is_genuine(fields), len(fields["md5sig"])) == (False, 32)


def test_forged_fields_stand_under_a_valid_signature(notifications: Notifications) -> None:
    """The signature covers five fields only; the genuine one follows where that is wanted."""
    order(notifications, "forged", fields={"payment_id": "1"}, is_extra=True)
    forged, genuine = notifications.plan(NOW, a_message())

    first, second = notifications.find(forged).fields, notifications.find(genuine).fields
    assert (first["payment_id"], is_genuine(first)) == ("1", True)
    assert (second["payment_id"], first["md5sig"]) == ("320025000001", second["md5sig"])


@pytest.mark.parametrize("is_signed", [False, True])
def test_forged_status_is_signed_anew_only_by_order(notifications: Notifications, *, is_signed: bool) -> None:
    """The one shows a signature that does not hold, the other a gateway that says something else than it did."""
    order(notifications, "forged", fields={"status_code": "-2"}, is_signed=is_signed)
    (number,) = notifications.plan(NOW, a_message())

    assert is_genuine(notifications.find(number).fields) == is_signed


def test_lost_never_goes_and_can_be_sent_again(notifications: Notifications) -> None:
    """It is in the record, with no attempt."""
    order(notifications, "lost")
    (number,) = notifications.plan(NOW, a_message())
    assert (sent(notifications, 1e6), notifications.is_over(number)) == ([], True)

    (again,) = notifications.resend(at(1e6), number, {})

    assert (sent(notifications, 1e6), notifications.find(again).copy_of) == (["A"], number)
    assert notifications.find(number).state == "lost"


def test_resent_with_other_fields(notifications: Notifications) -> None:
    """A replay with other values in it, and a forgery for an order that was never paid."""
    (number,) = notifications.plan(NOW, a_message())
    (replayed,) = notifications.resend(NOW, number, {"payment_id": "9"})
    (forged,) = notifications.resend(NOW, number, {"order_id": "B"}, is_signed=True)

    assert is_genuine(notifications.find(replayed).fields)
    assert (is_genuine(notifications.find(forged).fields), notifications.find(forged).order_id) == (True, "B")
    with pytest.raises(ControlError, match="is no notification"):
        notifications.resend(NOW, 99, {})


def test_after_return_waits_for_the_payer(notifications: Notifications) -> None:
    """It goes a second after the browser was sent on, or by itself after a minute."""
    order(notifications, "after_return")
    numbers = notifications.plan(NOW, a_message())
    assert sent(notifications, 10) == []
    notifications.payer_returned(numbers, at(10))

    assert (sent(notifications, 10), sent(notifications, 11)) == ([], ["A"])


def test_after_return_goes_by_itself_where_no_payer_comes(notifications: Notifications) -> None:
    """A tab that was closed does not swallow the news."""
    order(notifications, "after_return")
    notifications.plan(NOW, a_message())

    assert (sent(notifications, 59), sent(notifications, 60)) == ([], ["A"])


def test_failed_attempt_is_the_last_unless_retries_are_switched_on(notifications: Notifications) -> None:
    """The gateway documents no retries, so that nobody should count on them."""
    (number,) = notifications.plan(NOW, a_message())

    assert (sent(notifications, 0, http_status=500), sent(notifications, 1e6)) == (["A"], [])
    assert notifications.find(number).state == "failed"


def test_retries_go_on_until_one_is_answered_well(notifications: Notifications) -> None:
    """As often, and as far apart, as the switches say."""
    switches = Switches(notification_retries=2, notification_retry_interval_s=30)
    (number,) = notifications.plan(NOW, a_message())
    for seconds, http_status in ((0, 500), (30, None), (60, 204)):
        (due,) = notifications.take_due(at(seconds))
        notifications.note(due.number, Attempt(at=at(seconds), http_status=http_status), switches)
        assert notifications.take_due(at(seconds + 29)) == []

    record = notifications.find(number)
    assert (record.state, len(record.attempts)) == ("delivered", 3)


def test_schedule_strikes_the_same_notifications_each_time() -> None:
    """The same seed gives the same story."""

    def story() -> list[str | None]:
        desk = Notifications((DEFAULT_MERCHANT,))
        desk.faults.set_schedule(NotificationSchedule(seed=3, probabilities={"lost": 0.3, "late": 0.3}))
        for number in range(50):
            desk.plan(NOW, a_message(str(number)))
        return [each.fault for each in desk.records()]

    assert story() == story()
    assert {"lost", "late", None} == set(story())


def test_records_are_found_by_order_and_number(notifications: Notifications) -> None:
    """A test looks at its own order only."""
    for order_id in ("A", "B", "A"):
        notifications.plan(NOW, a_message(order_id))

    assert [each.number for each in notifications.records(order_id="A")] == [1, 3]
    assert [each.number for each in notifications.records(after=1, count=1)] == [2]
