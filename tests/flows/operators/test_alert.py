import asyncio
import itertools
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.flows.world import CHARGE, Gate, Raising, World, asked, outcome_of
from tests.relays import SEAL
from tests.runtime.receivers import OWNER, dispatch_on, register
from tests.store.test_inbox import NOTIFICATION

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.events.delivery import EndpointState
from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationEvent,
    NotificationReason,
    NotificationState,
    NotificationStep,
)
from payrelay.core.notifications.notification import advance as step_of_notification
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import Event, Operation, advance
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.errors import StoreUnavailable
from payrelay.flows.alerts.alert import AGAIN_AFTER_MS, AT_ONCE_MAX, GIVEN_UP_AFTER_MS, LEASE_MS, begin_alerts
from payrelay.flows.audit.audit import FINAL_AFTER_MS, anchor, keep_anchors
from payrelay.flows.events.manage_endpoints import Changes, change_endpoint, remove_endpoint
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Relay
from payrelay.flows.retention.clear import begin_clearing
from payrelay.runtime.alert_channels import AlertChannels, AnchorsOutside, NotGivenError
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.event_delivery import stop_endpoint
from payrelay.runtime.hooks import Hooks
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.inbox import REFUSED_ALERT_FROM, Inbox

BODY = b"card_holder_name=S+Perera"


class Channel:
    """Accepts alerts, or fails as often as a test says."""

    def __init__(self) -> None:
        self.accepted: list[dict[str, object]] = []
        self.failures = 0
        self.gate: Gate | None = None

    async def __call__(self, body: bytes) -> None:
        """Accepts one."""
        if self.gate is not None:
            await self.gate()
        if self.failures:
            self.failures -= 1
            raise NotGivenError("nobody there")
        self.accepted.append(json.loads(body))


class Scene:
    """A relay with two alert channels, and the outcomes that it counted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.channels = {"command": Channel(), "address": Channel()}
        self.outcomes: list[str] = []
        self.relay = self.another()

    def another(self) -> Relay:
        """Gives a relay as of another process on the same database."""
        kinds = tuple(Alerts(self.world.database, about) for about in AlertSubject)
        alerting = AlertChannels(alerts=kinds, channels=self.channels)
        return replace(self.world.relay, alerting=alerting, hooks=Hooks(alerted=self.outcomes.append))

    async def need(self, number: int = 1) -> Operation:
        """Makes an operation that needs an operator."""
        self.world.account.script.append(outcome_of(OutcomeKind.DIFFERED, payment_id="7"))
        await charge(self.world.relay, asked(f"k-{number}"), self.world.charge_of(number))
        return await self.world.operation()

    async def round(self, relay: Relay | None = None) -> int:
        """Gives the alerts that are due, and waits until that is done."""
        chosen = relay or self.relay
        count = await begin_alerts(chosen)
        await chosen.background.finish(60)
        return count

    @property
    def accepted(self) -> list[int]:
        """How many alerts each channel accepted."""
        return [len(channel.accepted) for channel in self.channels.values()]


@pytest.fixture
async def scene(world: World) -> Scene:
    """Gives a relay with two alert channels."""
    return Scene(world)


async def test_each_channel_gets_an_alert_once(scene: Scene) -> None:
    """An alert has the account, the reason and the amount, in sentences and ids, and nothing else."""
    operation = await scene.need()
    assert [await scene.round(), await scene.round()] == [1, 0]

    assert scene.accepted == [1, 1]
    message = scene.channels["command"].accepted[0]
    assert (message["operation_id"], message["alert"]) == (operation.id, f"{operation.id}/2")
    assert (message["state"], message["kind"], message["order_id"]) == ("needs_attention", "charge", "A-1")
    assert (message["amount"], message["currency"], message["payment_id"]) == (1000.0, "LKR", "7")
    assert (
        message["why"]
        == "The gateway answered that it was done, but for another order, amount or currency than requested"
    )
    assert CHARGE.customer_token not in json.dumps(message)


async def test_an_alert_is_a_line_of_the_log_and_a_count(scene: Scene) -> None:
    """An operator with neither command nor address watches these."""
    await scene.need()
    await scene.round()

    assert scene.world.log_events.count("operation_needs_attention") == 1
    assert scene.outcomes == ["raised", "given"]


async def test_without_a_channel_an_alert_is_only_logged(scene: Scene) -> None:
    """The alert is logged once, and then ended."""
    scene.channels.clear()
    await scene.need()
    assert [await scene.round(), await scene.round()] == [1, 0]

    assert scene.world.log_events == ["operation_needs_attention"]
    assert scene.outcomes == ["raised"]


async def test_a_failed_alert_is_tried_again_at_growing_distances(scene: Scene) -> None:
    """At last every hour, so that a channel that is down for a night loses no alert, and is not flooded."""
    await scene.need()
    scene.channels["address"].failures = 10**6
    tries = []
    for _ in range(8):
        while not await scene.round():
            scene.world.clock.passed_ms += 1_000
        tries.append(scene.world.clock.passed_ms)

    assert [later - earlier for earlier, later in itertools.pairwise(tries)] == [
        *AGAIN_AFTER_MS,
        AGAIN_AFTER_MS[-1],
        AGAIN_AFTER_MS[-1],
    ]
    assert scene.world.log_events.count("operation_needs_attention") == 1


async def test_a_channel_that_accepted_an_alert_does_not_get_it_again(scene: Scene) -> None:
    """Each channel's success is stored by itself."""
    await scene.need()
    scene.channels["address"].failures = 1
    await scene.round()
    scene.world.clock.passed_ms += AGAIN_AFTER_MS[0]
    await scene.round()

    assert scene.accepted == [1, 1]
    assert scene.outcomes == ["raised", "failed", "given"]


async def test_an_alert_that_is_too_old_is_given_up_and_logged(scene: Scene) -> None:
    """A channel that has been broken for days would only be flooded."""
    await scene.need()
    scene.channels["address"].failures = 10**6
    while scene.world.clock.passed_ms < 2 * GIVEN_UP_AFTER_MS:
        await scene.round()
        scene.world.clock.passed_ms += AGAIN_AFTER_MS[-1]

    assert scene.outcomes[-1] == "given_up"
    assert scene.world.log_events[-1] == "alert_given_up"
    assert scene.outcomes.count("failed") in range(70, 80)


async def test_two_processes_give_an_alert_once(scene: Scene) -> None:
    """Each process leases alerts that the other has not leased."""
    for number in range(5):
        await scene.need(number)
    await asyncio.gather(scene.round(), scene.round(scene.another()))

    assert scene.accepted == [5, 5]


async def test_an_alert_leased_by_a_dead_process_is_given_by_another(scene: Scene) -> None:
    """Nobody knows whether it was given; twice is better than never."""
    await scene.need()
    now_ms = scene.world.clock.now_ms()
    alerts = Alerts(scene.world.database, AlertSubject.OPERATION)
    await alerts.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=1)
    early = await scene.round()
    scene.world.clock.passed_ms += LEASE_MS

    assert (early, await scene.round()) == (0, 1)
    assert scene.accepted == [1, 1]


async def test_only_so_many_are_given_at_once(scene: Scene) -> None:
    """A flood of alerts must not become a flood of processes; nor may one that hangs delay the others."""
    for number in range(AT_ONCE_MAX + 1):
        await scene.need(number)
    gate = scene.channels["command"].gate = Gate()
    counts = [await begin_alerts(scene.relay), await begin_alerts(scene.relay)]
    gate.opened.set()
    await scene.round()
    await scene.round()

    assert counts == [AT_ONCE_MAX, 0]
    assert scene.accepted == [AT_ONCE_MAX + 1] * 2


async def test_a_failing_store_or_a_fault_leaves_the_alert_due(scene: Scene) -> None:
    """A store that is away, or a mistake, must not count as given, nor end the service."""
    await scene.need()
    scene.world.steps.put("get", Raising(StoreUnavailable("away")))
    scene.world.steps.put("get", Raising(ZeroDivisionError()), first=2)
    for _ in range(3):
        await scene.round()
        scene.world.clock.passed_ms += LEASE_MS

    assert scene.world.log_events == ["alert_not_stored", "alert_failed", "operation_needs_attention"]
    assert scene.accepted == [1, 1]


async def test_an_operation_that_is_gone_is_a_mistake_that_is_seen(scene: Scene) -> None:
    """Rows are never removed; where one is, the log says so."""
    await scene.need()
    await scene.world.forget()
    await scene.round()

    assert scene.world.log_events == ["alert_failed"]


async def test_an_alert_has_the_present_state(scene: Scene) -> None:
    """A late alert must not ask for a decision that was made meanwhile."""
    operation = await scene.need()
    decided, entry = advance(
        operation,
        Event.DECIDED_FAILED,
        at_ms=1,
        retention=scene.relay.settings.retention,
        evidence=Evidence(operator="ann"),
    )
    await scene.relay.journal.record(decided, entry, None)
    await scene.round()

    message = scene.channels["command"].accepted[0]
    assert message["state"] == "failed"
    assert str(message["why"]).startswith("The gateway answered that it was done, but for another")


async def test_an_alert_comes_also_where_its_journal_entries_were_cleared(scene: Scene) -> None:
    """The channel was away for longer than histories are kept: the alert says what became of the operation."""
    relay, world = scene.relay, scene.world
    relay.clearing.periods = relay.clearing.periods._replace(histories=1_000)
    operation = await scene.need()
    decided, entry = advance(
        operation,
        Event.DECIDED_SUCCEEDED,
        at_ms=1,
        retention=relay.settings.retention,
        evidence=Evidence(operator="ann"),
    )
    await relay.journal.record(decided, entry, None)
    world.clock.passed_ms += DAY_MS
    while await anchor(relay.journal.trail, world.clock.now_ms() - FINAL_AFTER_MS):
        pass
    assert await begin_clearing(relay) > 0
    assert len(await relay.journal.history(operation.id)) == 1
    await scene.round()

    message = scene.channels["command"].accepted[0]
    assert (message["state"], message["alert"]) == ("succeeded", f"{operation.id}/2")


async def test_a_notification_that_needs_an_operator_is_an_alert_too(scene: Scene) -> None:
    """It goes to the alert channels with what it reports; nothing of the customer is in it."""
    inbox = scene.relay.inbox
    await inbox.put(NOTIFICATION, BODY)
    doubted = NotificationStep(event=NotificationEvent.DOUBTED, reason=NotificationReason.OTHER_AMOUNT)
    await inbox.record(step_of_notification(NOTIFICATION, doubted, at_ms=scene.world.clock.now_ms()))
    scene.channels["address"].failures = 1
    assert [await scene.round(), await scene.round()] == [1, 0]
    scene.world.clock.passed_ms += AGAIN_AFTER_MS[0]
    assert await scene.round() == 1

    assert scene.accepted == [1, 1]
    message = scene.channels["command"].accepted[0]
    assert (message["alert"], message["notification_id"], message["state"]) == (
        "ntf_0001/2",
        "ntf_0001",
        "needs_attention",
    )
    assert (message["order_id"], message["amount"], message["currency"]) == ("A-1", 1000.0, "LKR")
    assert message["why"] == "It does not show the amount and currency that were requested"
    assert "Perera" not in json.dumps(message)
    assert scene.world.log_events == ["notification_alert", "alert_not_given"]
    assert scene.outcomes == ["raised", "failed", "given"]


async def test_refused_notifications_are_one_alert(scene: Scene) -> None:
    """The alert is about one of them, says how many there are, and what may be wrong."""
    inbox = scene.relay.inbox
    refused = {
        "authenticity": Authenticity.FORGED,
        "state": NotificationState.REFUSED,
        "reason": NotificationReason.FORGED,
        "amount_minor": None,
    }
    now_ms = scene.world.clock.now_ms()
    for number in range(REFUSED_ALERT_FROM + 1):
        own = {"id": f"ntf_{number}", "digest": f"{number}" * 64, "received_at_ms": now_ms}
        await inbox.put(msgspec.structs.replace(NOTIFICATION, **refused, **own), BODY)
    assert await scene.round() == 1

    message = scene.channels["command"].accepted[0]
    assert str(message["why"]).startswith(f"{REFUSED_ALERT_FROM} notifications or more were refused within a day")
    assert message["amount"] is None


class Forgetful(Inbox):
    """Has no notification any more."""

    async def get(self, notification_id: str) -> Notification | None:  # noqa: ARG002, the interface of the inbox
        """Finds none."""
        return None


async def test_a_notification_that_is_gone_is_a_mistake_that_is_seen(scene: Scene) -> None:
    """Rows of notifications that need an operator are never removed; where one is, the log says so."""
    inbox = scene.relay.inbox
    await inbox.put(NOTIFICATION, BODY)
    doubted = NotificationStep(event=NotificationEvent.DOUBTED, reason=NotificationReason.OTHER_AMOUNT)
    await inbox.record(step_of_notification(NOTIFICATION, doubted, at_ms=scene.world.clock.now_ms()))
    await scene.round(replace(scene.relay, inbox=Forgetful(scene.world.database, SEAL, scene.relay.checkouts.rows)))

    assert scene.world.log_events == ["alert_failed"]


async def stopped_endpoint(scene: Scene, url: str = "https://hooks.example/secret-path") -> tuple[Relay, str]:
    """Stops an endpoint of the shop's; gives a relay that knows endpoints, and the endpoint."""
    dispatch = dispatch_on(scene.world.database, scene.world.clock)
    dispatch.is_closing = True  # it sends nothing
    issued = await register(dispatch, url)
    for _ in range(2):
        await stop_endpoint(dispatch, issued.id, "it accepted no event for three days")
    return replace(scene.relay, dispatch=dispatch), issued.id


async def test_an_endpoint_that_was_stopped_is_an_alert(scene: Scene) -> None:
    """Each stop is one alert on every channel; nobody may read the log for days."""
    relay, endpoint_id = await stopped_endpoint(scene)
    scene.channels["address"].failures = 1
    assert await scene.round(relay) == 1
    scene.world.clock.passed_ms += AGAIN_AFTER_MS[0]
    assert [await scene.round(relay), await scene.round(relay)] == [1, 0]

    assert scene.accepted == [1, 1]
    message = scene.channels["address"].accepted[0]
    assert (message["kind"], message["endpoint_id"], message["host"]) == (
        "endpoint_stopped",
        endpoint_id,
        "hooks.example",
    )
    assert (message["why"], message["principal"]) == ("it accepted no event for three days", "shop")
    assert "secret-path" not in json.dumps(message)
    assert scene.outcomes == ["raised", "failed", "given"]


async def test_each_stop_of_an_endpoint_is_an_alert_of_its_own(scene: Scene) -> None:
    """The owner who started it again believed that its receiver worked."""
    relay, endpoint_id = await stopped_endpoint(scene)
    await scene.round(relay)
    await change_endpoint(relay.dispatch, OWNER, endpoint_id, Changes(state=EndpointState.ACTIVE))
    scene.world.clock.passed_ms += 1
    await stop_endpoint(relay.dispatch, endpoint_id, "it answered with HTTP 410, which ends its deliveries")
    await scene.round(relay)

    assert [str(message["why"])[:11] for message in scene.channels["command"].accepted] == [
        "it accepted",
        "it answered",
    ]


async def test_an_endpoint_that_was_started_or_removed_is_no_alert(scene: Scene) -> None:
    """Its owner started or removed it before the alert could be given, and knows."""
    relay, endpoint_id = await stopped_endpoint(scene)
    await change_endpoint(relay.dispatch, OWNER, endpoint_id, Changes(state=EndpointState.ACTIVE))
    other_id = (await register(relay.dispatch, "https://other.example/")).id
    await stop_endpoint(relay.dispatch, other_id, "it accepted no event for three days")
    await remove_endpoint(relay.dispatch, OWNER, other_id)
    assert [await scene.round(relay), await scene.round(relay)] == [1, 0]

    assert scene.accepted == [0, 0]
    assert scene.outcomes == []


async def test_a_row_with_a_wrong_digest_is_an_alert(scene: Scene) -> None:
    """Somebody writes to the database who shouldn't: that must not wait until an operator runs the audit."""
    await scene.relay.checkouts.rows.report("credentials/key1")
    await scene.relay.checkouts.rows.report("credentials/key1")
    assert [await scene.round(), await scene.round()] == [1, 0]

    assert scene.accepted == [1, 1]
    message = scene.channels["command"].accepted[0]
    assert (message["kind"], message["row"], message["alert"]) == (
        "row_changed",
        "credentials/key1",
        "credentials/key1/1",
    )
    assert scene.world.log_events == ["row_digest_wrong"]
    assert scene.outcomes == ["raised", "given"]


async def test_the_newest_anchor_goes_out_once_a_day_where_that_is_set(scene: Scene, tmp_path: Path) -> None:
    """Kept where nobody reaches who reaches the database, it shows what was removed since; it needs no operator."""
    await scene.need()
    channels = replace(scene.relay.alerting, anchors=AnchorsOutside(tmp_path / "anchors.txt", is_told=True))
    relay = replace(scene.relay, alerting=channels)
    await scene.round(relay)
    for hours in (2, 1, 24):
        scene.world.clock.passed_ms += hours * HOUR_MS
        await keep_anchors(relay)
        await scene.round(relay)
    newest = await relay.journal.trail.last_anchor()
    assert newest is not None

    told = [each for each in scene.channels["command"].accepted if each.get("kind") == "audit_anchor"]
    assert [each["anchor"] for each in told] == [newest.text] * 2
    assert (tmp_path / "anchors.txt").read_text().count(f"Z {newest.text}\n") == 2
    assert scene.outcomes == ["raised", "given", "given", "given"]


async def test_anchors_stay_where_they_are_unless_that_is_set(scene: Scene) -> None:
    """An upgrade must not send anybody messages that he did not ask for."""
    await scene.need()
    await scene.round()
    scene.world.clock.passed_ms += 2 * HOUR_MS
    assert await keep_anchors(scene.relay) == 1

    assert await scene.round() == 0


async def test_a_file_of_anchors_that_can_not_be_written_is_told(scene: Scene, tmp_path: Path) -> None:
    """Whoever relies on it learns of it; the anchors are made all the same, and the file is tried again."""
    await scene.need()
    channels = replace(scene.relay.alerting, anchors=AnchorsOutside(tmp_path / "gone" / "anchors.txt"))
    relay = replace(scene.relay, alerting=channels)
    scene.world.clock.passed_ms += 2 * HOUR_MS
    assert await keep_anchors(relay) == 1
    await keep_anchors(relay)
    assert scene.world.log_events.count("anchor_not_kept") == 2

    (tmp_path / "gone").mkdir()
    await keep_anchors(relay)
    assert len((tmp_path / "gone" / "anchors.txt").read_text().splitlines()) == 1


def forge(world: World, statements: str) -> None:
    """Writes to the database as its owner does: no trigger stops him."""
    connection = sqlite3.connect(world.path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.executescript(statements)
    connection.close()


async def anchored(scene: Scene, relay: Relay) -> None:
    """Makes an anchor."""
    await scene.need()
    await scene.round(relay)
    scene.world.clock.passed_ms += 2 * HOUR_MS
    assert await keep_anchors(relay) == 1


@pytest.mark.parametrize("change", ["DELETE FROM anchors", "UPDATE anchors SET digest = 'other'"])
async def test_no_anchor_is_made_over_what_is_left_where_one_is_gone(scene: Scene, change: str) -> None:
    """Whoever removes an operation with its anchors would have the service itself hide it with new ones."""
    await anchored(scene, scene.relay)
    forge(scene.world, change)
    scene.world.clock.passed_ms += 2 * HOUR_MS
    assert [await keep_anchors(scene.relay) for _ in range(2)] == [0, 0]
    await scene.round()
    forge(scene.world, "DELETE FROM anchors")

    [message] = [each for each in scene.channels["command"].accepted if each.get("row") == "anchors/1"]
    assert "the service makes no more anchors" in str(message["explanation"])
    assert scene.world.log_events.count("anchor_gone") == 2


async def test_an_anchor_that_a_file_has_is_missed_by_a_new_process(scene: Scene, tmp_path: Path) -> None:
    """What a process has seen ends with it; the file stays where no writer of the database reaches it."""

    def another() -> Relay:
        anchors = AnchorsOutside(tmp_path / "anchors.txt")
        return replace(scene.relay, alerting=replace(scene.relay.alerting, anchors=anchors))

    await anchored(scene, another())
    assert await keep_anchors(another()) == 0
    assert scene.world.log_events.count("anchor_gone") == 0
    forge(scene.world, "DELETE FROM anchors")

    assert await keep_anchors(another()) == 0
    assert scene.world.log_events.count("anchor_gone") == 1
    assert await keep_anchors(scene.another()) == 1, "nothing outside tells a process that knows none"


@pytest.mark.parametrize("last_line", ["", "x", "2026-01-01T00:00:00Z 1:cut", "2026-01-01T00:00:00Z\n"])
async def test_a_line_that_a_full_disk_cut_off_accuses_nobody(scene: Scene, tmp_path: Path, last_line: str) -> None:
    """It is no anchor that was ever there."""
    (tmp_path / "anchors.txt").write_text(last_line)

    assert await AnchorsOutside(tmp_path / "anchors.txt").known() == []
    assert not await scene.relay.journal.trail.has_anchor("x:y")


async def test_a_day_on_which_no_anchor_is_told_is_noticed(scene: Scene) -> None:
    """Whoever writes ahead that an anchor was told would silence the channels for as many days as he likes."""
    await anchored(scene, scene.relay)
    day = scene.relay.clock.now_ms() // DAY_MS
    forge(
        scene.world,
        "INSERT INTO anchor_alerts (anchor, version, created_at_ms, next_try_at_ms)"  # noqa: S608, a number of ours
        f" VALUES ('9:forged', {day}, 1, NULL)",
    )
    relay = replace(scene.relay, alerting=replace(scene.relay.alerting, anchors=AnchorsOutside(is_told=True)))
    await keep_anchors(relay)
    await scene.round()

    assert scene.world.log_events.count("anchor_not_told") == 1
    assert scene.channels["command"].accepted[-1]["row"] == "anchor_alerts/9:forged"


@pytest.mark.parametrize(("kept", "is_explained"), [(0, True), (1, False)])
async def test_an_anchor_of_a_lost_window_stops_no_new_ones(scene: Scene, kept: int, *, is_explained: bool) -> None:
    """After a recovery the audit must go on; an anchor that was made before the lost window is missed as ever."""
    await anchored(scene, scene.relay)
    scene.world.clock.passed_ms += 2 * HOUR_MS
    now_ms = scene.world.clock.now_ms()
    lost = LostWindow(since_ms=now_ms if kept else 0, until_ms=now_ms)
    newest = Incarnation(number=2, reason=Beginning.RECOVERED, began_at_ms=now_ms, lost=lost)

    async def read() -> DatabaseIdentity:
        return DatabaseIdentity(id="0" * 32, incarnations=(newest,))

    forge(scene.world, "UPDATE anchors SET digest = 'other'" if kept else "DELETE FROM anchors")
    relay = replace(
        scene.relay,
        database=replace(scene.relay.database, lost_commits=LostCommits(read, scene.world.clock, scene.relay.log)),
    )
    assert (await keep_anchors(relay) > 0) is is_explained
    assert ("anchor_gone" in scene.world.log_events) is not is_explained
    forge(scene.world, "DELETE FROM anchors")
