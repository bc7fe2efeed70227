"""Each notification is stored once; what is refused is bounded; nothing of it lies in clear that must not."""

import asyncio

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import NOTIFICATION as NOTIFIED
from tests.samples import NOW_MS

from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationEvent,
    NotificationFilter,
    NotificationKind,
    NotificationReason,
    NotificationState,
    NotificationStep,
    ReportedStatus,
    advance,
)
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.secret import Secret
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import REFUSED_ALERT_FROM, Inbox

REFUSED_MAX = 20
OF_AN_ORDER_MAX = 8
BODY = b"merchant_id=1211149&card_holder_name=S+Perera&customer_token=CANARY59AFEE022CC69CA39D325E1B59"
NOTIFICATION = msgspec.structs.replace(NOTIFIED, next_at_ms=NOW_MS + 60_000)
EVERYTHING = query("SELECT * FROM notifications")
TOKENS = query("SELECT * FROM accepted_tokens")


def numbered(number: int, **members: object) -> Notification:
    """Gives another notification."""
    own = {"id": f"ntf_{number:04}", "digest": f"{number:064x}"}
    return msgspec.structs.replace(NOTIFICATION, **(own | members))


def rows(statement: Statement) -> Unit[list[Row]]:
    """Reads rows."""
    return (yield statement)


@pytest.fixture
def inbox(database: Database) -> Inbox:
    """Gives an inbox in an empty database."""
    return Inbox(
        database, Seal((b"k" * 32,)), digests_of(database), refused_max=REFUSED_MAX, of_an_order_max=OF_AN_ORDER_MAX
    )


async def test_one_that_comes_again_is_counted(inbox: Inbox) -> None:
    """A gateway that repeats must not make two of one; that it repeats is recorded."""
    first = await inbox.put(NOTIFICATION, BODY)
    again = msgspec.structs.replace(NOTIFICATION, id="ntf_0002", received_at_ms=NOW_MS + 5)
    second = await inbox.put(again, BODY)

    assert first is not None
    assert (first.is_new, first.notification) == (True, NOTIFICATION)
    assert second is not None
    assert not second.is_new
    assert second.notification == msgspec.structs.replace(NOTIFICATION, repeats=1, last_at_ms=NOW_MS + 5)
    assert await inbox.list(NotificationFilter(), before=None, limit=10) == [second.notification]


async def test_of_many_at_once_one_is_new(inbox: Inbox) -> None:
    """Two deliveries at the same moment must not both be worked on as the first."""
    put = await asyncio.gather(*(inbox.put(numbered(each, digest="d" * 64), BODY) for each in range(8)))

    assert [each is not None and each.is_new for each in put].count(True) == 1


async def test_the_body_lies_sealed_and_bound(inbox: Inbox, database: Database) -> None:
    """It holds a token and a name; in another row it must not open."""
    await inbox.put(NOTIFICATION, BODY)
    stored = await database.read(rows(Statement(EVERYTHING, ())))
    await inbox.put(numbered(2), BODY)
    body = "(SELECT sealed_body FROM notifications WHERE id = 'ntf_0001')"
    move = query(f"UPDATE notifications SET sealed_body = {body} WHERE id = 'ntf_0002'")  # noqa: S608, our own words
    await database.write(rows(Statement(move, ())))

    assert await inbox.body_of("ntf_0001") == BODY
    assert not any(word in repr(stored[0]) for word in ("CANARY", "Perera"))
    with pytest.raises(StoreUnusable):
        await inbox.body_of("ntf_0002")
    assert await inbox.body_of("ntf_9") is None


async def test_refused_notifications_are_stored_up_to_a_number(inbox: Inbox) -> None:
    """Anybody can post a forged notification; nobody may fill the disk with them, or keep a genuine one out."""
    refused = {
        "state": NotificationState.REFUSED,
        "authenticity": Authenticity.FORGED,
        "reason": NotificationReason.FORGED,
        "next_at_ms": None,
    }
    for number in range(REFUSED_MAX):
        assert await inbox.put(numbered(number, **refused), b"x") is not None

    assert await inbox.put(numbered(REFUSED_MAX, **refused), b"x") is None
    known = await inbox.put(numbered(0, **refused), b"x")
    assert known is not None
    assert known.notification.repeats == 1
    assert await inbox.put(numbered(REFUSED_MAX + 1), BODY) is not None
    assert await inbox.forget_refused(NOW_MS + 1, 10) == 10
    assert await inbox.put(numbered(REFUSED_MAX, **refused), b"x") is not None


async def test_one_order_is_accepted_so_often_in_a_day(inbox: Inbox) -> None:
    """Whoever holds one signature can make bodies without end, all of the same order and status; others go on."""
    for number in range(OF_AN_ORDER_MAX):
        assert await inbox.put(numbered(number), BODY) is not None

    assert await inbox.put(numbered(9_000), BODY) is None
    assert await inbox.put(numbered(9_001, order_id="A-2"), BODY) is not None
    assert await inbox.put(numbered(9_003, reported=ReportedStatus.CHARGED_BACK), BODY) is not None
    assert await inbox.put(numbered(9_002, received_at_ms=NOW_MS + 86_400_001), BODY) is not None


async def test_what_is_due_is_given_once(inbox: Inbox) -> None:
    """Two processes must not work on the same notification at the same time; a dead one's comes back."""
    await inbox.put(numbered(1, next_at_ms=NOW_MS), BODY)
    await inbox.put(numbered(2, next_at_ms=NOW_MS + 9), BODY)
    await inbox.put(numbered(3, next_at_ms=None), BODY)

    assert await inbox.next_due_ms() == NOW_MS
    taken = await inbox.lease_due(NOW_MS + 1, leased_until_ms=NOW_MS + 100, orders=5, of_an_order=5)
    assert [each.id for each in taken] == ["ntf_0001"]
    assert await inbox.lease_due(NOW_MS + 1, leased_until_ms=NOW_MS + 100, orders=5, of_an_order=5) == []
    back = await inbox.lease_due(NOW_MS + 100, leased_until_ms=NOW_MS + 200, orders=5, of_an_order=5)
    assert sorted(each.id for each in back) == ["ntf_0001", "ntf_0002"]


async def test_a_flood_on_one_order_keeps_out_no_other(inbox: Inbox) -> None:
    """Each order takes one place in a round, however much of it is due, and however long."""
    for number in range(OF_AN_ORDER_MAX):
        await inbox.put(numbered(number, next_at_ms=NOW_MS), BODY)
    await inbox.put(numbered(50, order_id="A-2", next_at_ms=NOW_MS + 1), BODY)
    await inbox.put(numbered(51, order_id="A-3", next_at_ms=NOW_MS + 2), BODY)
    leased = await inbox.lease_due(NOW_MS + 9, leased_until_ms=NOW_MS + 100, orders=2, of_an_order=3)

    assert [each.id for each in leased] == ["ntf_0000", "ntf_0001", "ntf_0002", "ntf_0050"]


async def test_what_waits_for_a_search_is_leased_with_its_order(inbox: Inbox) -> None:
    """One search answers all of it; what was compared with this search already is not given again."""
    members = {"state": NotificationState.WAITING, "reason": NotificationReason.NOT_SHOWN}
    await inbox.put(numbered(1, **members), BODY)
    await inbox.put(numbered(2, **members, updated_at_ms=NOW_MS + 5), BODY)
    waits = members | {"reason": NotificationReason.SEARCH_WAITS}
    await inbox.put(numbered(3, **waits, updated_at_ms=NOW_MS + 5), BODY)
    await inbox.put(numbered(4, **members, order_id="A-2"), BODY)
    await inbox.put(numbered(5), BODY)
    leased = await inbox.lease_waiting(
        NOTIFICATION.merchant, "A-1", before_ms=NOW_MS + 5, leased_until_ms=NOW_MS + 9, limit=9
    )

    assert [(each.id, each.next_at_ms) for each in leased] == [("ntf_0001", NOW_MS + 9), ("ntf_0003", NOW_MS + 9)]


async def test_a_new_owner_expires_the_leases_of_a_dead_process(inbox: Inbox) -> None:
    """A process died right after its answer: the next one must not wait until nobody can be working on it any more."""
    await inbox.put(NOTIFICATION, BODY)
    waiting = numbered(2, state=NotificationState.WAITING, reason=NotificationReason.UNKNOWN_ORDER)
    await inbox.put(waiting, BODY)

    assert await inbox.expire_leases(NOW_MS + 5) == 1
    assert [
        each.id for each in await inbox.lease_due(NOW_MS + 5, leased_until_ms=NOW_MS + 9, orders=5, of_an_order=5)
    ] == ["ntf_0001"]


async def test_a_change_names_the_version_that_it_was_decided_on(inbox: Inbox) -> None:
    """Of two that decide at once one is void, whoever comes last."""
    await inbox.put(NOTIFICATION, BODY)
    changed = advance(
        NOTIFICATION,
        NotificationStep(event=NotificationEvent.APPLIED, reason=NotificationReason.CHECKOUT_FINISHED),
        at_ms=NOW_MS + 9,
    )
    await inbox.record(changed)

    assert await inbox.get(NOTIFICATION.id) == changed
    with pytest.raises(Outdated):
        await inbox.record(changed)


async def test_lists_by_what_support_knows(inbox: Inbox) -> None:
    """A caller has an order's number, or a payment's, and not ours."""
    for number in range(4):
        await inbox.put(numbered(number, order_id=f"A-{number % 2}"), BODY)

    of_order = await inbox.list(NotificationFilter(order_id="A-1"), before=None, limit=10)
    assert [each.id for each in of_order] == ["ntf_0003", "ntf_0001"]
    page = await inbox.list(NotificationFilter(state=NotificationState.RECEIVED), before="ntf_0003", limit=2)
    assert [each.id for each in page] == ["ntf_0002", "ntf_0001"]


async def test_bodies_are_forgotten_and_the_rest_stays(inbox: Inbox) -> None:
    """A customer's name needn't be stored for as long as that a payment was notified; what is open needs its body."""
    await inbox.put(numbered(1, next_at_ms=None), BODY)
    await inbox.put(numbered(2), BODY)
    await inbox.put(numbered(3, next_at_ms=None, order_id="A-3"), BODY)

    assert await inbox.forget_bodies_of_order(NOTIFICATION.merchant, "A-1", "shop") == 1
    assert await inbox.body_of("ntf_0001") is None
    assert await inbox.forget_bodies(NOW_MS + 1, 10) == 1
    assert await inbox.body_of("ntf_0003") is None
    assert await inbox.body_of("ntf_0002") == BODY
    assert len(await inbox.list(NotificationFilter(), before=None, limit=10)) == 3


async def test_the_first_token_is_the_accepted_one(inbox: Inbox, database: Database) -> None:
    """A signature covers no token: whoever repeats it with another must not put another's card in its place."""
    kind = NotificationKind.PREAPPROVAL
    assert await inbox.accepted_token(NOTIFICATION.merchant, "A-1", kind) is None
    assert await inbox.accept_token(NOTIFICATION, kind, "CANARY1", at_ms=NOW_MS)

    assert await inbox.accept_token(NOTIFICATION, kind, "CANARY1", at_ms=NOW_MS)
    assert not await inbox.accept_token(NOTIFICATION, kind, "CANARY2", at_ms=NOW_MS)
    assert await inbox.accepted_token(NOTIFICATION.merchant, "A-1", kind) is None
    assert await inbox.accept_token(NOTIFICATION, NotificationKind.AUTHORIZATION, "CANARY2", at_ms=NOW_MS)
    held = await inbox.accepted_token(NOTIFICATION.merchant, "A-1", NotificationKind.AUTHORIZATION)
    assert held == Secret("CANARY2")
    assert await inbox.destroy_token(NOTIFICATION.merchant, "A-1", NotificationKind.AUTHORIZATION)
    assert await inbox.accepted_token(NOTIFICATION.merchant, "A-1", NotificationKind.AUTHORIZATION) is None
    assert "CANARY" not in repr(await database.read(rows(Statement(TOKENS, ()))))


async def test_an_operators_token_takes_the_place_of_an_earlier_one(inbox: Inbox) -> None:
    """Of two that operators accepted the later decision counts, in whatever order they are worked on."""
    kind, merchant = NotificationKind.AUTHORIZATION, NOTIFICATION.merchant
    assert await inbox.accept_token(NOTIFICATION, kind, "first", at_ms=NOW_MS)
    later = msgspec.structs.replace(NOTIFICATION, id="ntf_0002", accepted_at_ms=NOW_MS + 2)
    earlier = msgspec.structs.replace(NOTIFICATION, id="ntf_0003", accepted_at_ms=NOW_MS + 1)

    assert await inbox.accept_token(later, kind, "later", at_ms=NOW_MS + 9)
    assert not await inbox.accept_token(earlier, kind, "earlier", at_ms=NOW_MS + 9)
    assert not await inbox.accept_token(NOTIFICATION, kind, "first", at_ms=NOW_MS + 9)
    assert await inbox.accepted_token(merchant, "A-1", kind) == Secret("later")


async def doubted(
    inbox: Inbox, number: int, why: NotificationReason = NotificationReason.OTHER_AMOUNT, **members: object
) -> Notification:
    """Stores a notification, and that it contradicts what is known."""
    notification = numbered(number, **members)
    await inbox.put(notification, BODY)
    changed = advance(
        notification,
        NotificationStep(event=NotificationEvent.DOUBTED, reason=why),
        at_ms=notification.received_at_ms,
    )
    await inbox.record(changed)
    return changed


async def test_what_needs_attention_is_an_alert_once_a_day_for_its_order_and_reason(
    inbox: Inbox, database: Database
) -> None:
    """It is written with the change; and repeats of one notification must not alert an operator again and again.

    Nonsense that anybody may post must not keep back the alert of a second payment on the same day either.
    """
    alerts = Alerts(database, AlertSubject.NOTIFICATION)
    first = await doubted(inbox, 1)
    await doubted(inbox, 2)
    await doubted(inbox, 3, order_id="A-3")
    await doubted(inbox, 5, why=NotificationReason.SECOND_PAYMENT)
    await doubted(inbox, 4, received_at_ms=NOW_MS + DAY_MS)
    taken = await alerts.lease_due(NOW_MS + DAY_MS, leased_until_ms=NOW_MS + 2 * DAY_MS, limit=10)

    assert sorted(alert.subject_id for alert in taken) == ["ntf_0001", "ntf_0003", "ntf_0004", "ntf_0005"]
    assert {alert.version for alert in taken} == {first.version}
    assert await alerts.next_due_ms() == NOW_MS + 2 * DAY_MS
    await alerts.put_off(taken[0], frozenset({"command"}), NOW_MS + 3 * DAY_MS)
    for alert in taken[1:]:
        await alerts.end(alert, frozenset())
    assert await alerts.next_due_ms() == NOW_MS + 3 * DAY_MS


async def test_many_that_are_refused_are_one_alert_a_day(inbox: Inbox, database: Database) -> None:
    """A flood is one alert; so is a wrong secret, by which all that the gateway sends is refused."""
    alerts = Alerts(database, AlertSubject.NOTIFICATION)
    refused = {
        "authenticity": Authenticity.FORGED,
        "state": NotificationState.REFUSED,
        "reason": NotificationReason.FORGED,
        "next_at_ms": None,
    }
    await inbox.put(numbered(50, **refused, received_at_ms=NOW_MS - 2 * DAY_MS), BODY)
    for number in range(1, REFUSED_ALERT_FROM):
        await inbox.put(numbered(number, **refused), BODY)
    assert await alerts.next_due_ms() is None
    for number in range(REFUSED_ALERT_FROM, REFUSED_MAX - 1):
        await inbox.put(numbered(number, **refused), BODY)

    taken = await alerts.lease_due(NOW_MS, leased_until_ms=NOW_MS + 1, limit=10)
    assert [alert.subject_id for alert in taken] == [f"ntf_{REFUSED_ALERT_FROM:04}"]
