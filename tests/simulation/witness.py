"""The witness: sees every change of a state and every event that tells of one, in the commit in which it is written.

It lies in the database itself, as triggers, so that it forgets nothing that the program forgets in its time.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Final

from payrelay.core.events.event import PAID_AGAIN
from payrelay.core.payments.operation import Event, State
from payrelay.flows.resolution.resend import SEND_WITHIN_S

_TRIGGERS: Final = """
CREATE TABLE seen_changes (number INTEGER PRIMARY KEY, subject TEXT, version INTEGER, type TEXT);
CREATE TABLE seen_events (
    number INTEGER PRIMARY KEY, id TEXT, subject TEXT, data TEXT, type TEXT, principal TEXT, at_ms INTEGER
);
CREATE INDEX seen_events_of ON seen_events (subject);
CREATE TRIGGER see_new_operation AFTER INSERT ON operations WHEN new.state NOT IN ('accepted', 'sending')
    BEGIN INSERT INTO seen_changes (subject, version, type)
        VALUES ('operation:' || new.id, new.version, 'operation.' || new.state); END;
CREATE TRIGGER see_operation AFTER UPDATE OF state ON operations
    WHEN new.state <> old.state AND new.state NOT IN ('accepted', 'sending')
    BEGIN INSERT INTO seen_changes (subject, version, type)
        VALUES ('operation:' || new.id, new.version, 'operation.' || new.state); END;
CREATE TRIGGER see_checkout AFTER UPDATE OF state ON checkouts WHEN new.state <> old.state
    BEGIN INSERT INTO seen_changes (subject, version, type)
        VALUES ('checkout:' || new.id, new.version, 'checkout.' || new.state); END;
CREATE TRIGGER see_new_customer AFTER INSERT ON customers
    BEGIN INSERT INTO seen_changes (subject, version, type)
        VALUES ('customer:' || new.id, new.version, 'customer.created'); END;
CREATE TRIGGER see_customer AFTER UPDATE OF state ON customers WHEN new.state <> old.state
    BEGIN INSERT INTO seen_changes (subject, version, type)
        VALUES ('customer:' || new.id, new.version, 'customer.' || new.state); END;
CREATE TRIGGER see_chargeback AFTER INSERT ON chargebacks
    BEGIN INSERT INTO seen_changes (subject, type) VALUES ('payment:' || new.payment_id, 'payment.charged_back'); END;
CREATE TRIGGER see_failed_refund AFTER INSERT ON failed_refunds
    BEGIN INSERT INTO seen_changes (subject, type) VALUES ('payment:' || new.payment_id, 'payment.refund_failed'); END;
CREATE TRIGGER see_event AFTER INSERT ON outbox
    BEGIN INSERT INTO seen_events (id, subject, data, type, principal, at_ms)
        VALUES (new.id, new.subject, new.data, new.type, new.principal, new.at_ms); END;
CREATE TABLE seen_money (number INTEGER PRIMARY KEY, what TEXT, id TEXT, data TEXT);
CREATE TRIGGER see_made_operation AFTER INSERT ON operations WHEN new.state = 'succeeded'
    BEGIN INSERT INTO seen_money (what, id) VALUES ('operation', new.id); END;
CREATE TRIGGER see_done_operation AFTER UPDATE OF state ON operations
    WHEN new.state = 'succeeded' AND old.state <> 'succeeded'
    BEGIN INSERT INTO seen_money (what, id) VALUES ('operation', new.id); END;
CREATE TRIGGER see_paid_checkout AFTER UPDATE ON checkouts
    WHEN new.state = 'completed' AND (old.state <> 'completed' OR new.payment_id IS NOT old.payment_id)
    BEGIN INSERT INTO seen_money (what, id) VALUES ('checkout', new.id); END;
CREATE TRIGGER see_installment AFTER INSERT ON installments WHEN new.is_paid = 1
    BEGIN INSERT INTO seen_money (what, id, data) VALUES ('installment', new.payment, new.subscription_id); END;
CREATE TRIGGER see_money_taken_back AFTER INSERT ON chargebacks
    BEGIN INSERT INTO seen_money (what, id) VALUES ('chargeback', new.payment_id); END;
CREATE TRIGGER see_new_record AFTER INSERT ON payments_seen
    BEGIN INSERT INTO seen_money (what, id, data) VALUES ('record', new.payment_id, new.status); END;
CREATE TRIGGER see_record AFTER UPDATE ON payments_seen WHEN new.status <> old.status
    BEGIN INSERT INTO seen_money (what, id, data) VALUES ('record', new.payment_id, new.status); END;
CREATE TRIGGER see_paid_again AFTER INSERT ON outbox WHEN new.type = 'order.paid_again'
    BEGIN INSERT INTO seen_money (what, id, data) VALUES ('told as paid again', new.principal, new.data); END;
CREATE TRIGGER see_endpoint AFTER INSERT ON endpoints
    BEGIN INSERT INTO seen_events (id, subject, type, principal)
        VALUES (new.id, 'endpoint:' || new.id, 'registered', new.principal); END;
"""
UNCHANGING: Final = frozenset({"customer.updated", PAID_AGAIN})
"""The events that tell of no change of their subject's state."""
WITHDRAWN: Final = "checkout.expired"
"""What becomes without an event of a page that was found, as soon as it was stored, to be in the way of a charge."""
_UNTOLD: Final = """
SELECT subject, type FROM seen_changes AS change WHERE number > ? AND NOT EXISTS (
    SELECT 1 FROM seen_events AS event
    WHERE event.subject = change.subject AND event.type = change.type
    AND json_extract(event.data, '$.version') IS change.version
)
"""
_STATE: Final = "SELECT state FROM operations WHERE id = ?"
_NEWEST: Final = "SELECT version, event, at_ms FROM history WHERE operation_id = ? ORDER BY version DESC LIMIT 2"
_LAST: Final = "SELECT coalesce(max(number), 0) FROM seen_changes"
_CHANGES: Final = "SELECT subject, type FROM seen_changes ORDER BY number"
_EVENTS: Final = "SELECT id, subject, type, principal FROM seen_events ORDER BY number"
_WAITING: Final = (
    "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM deliveries WHERE next_try_at_ms IS NOT NULL), "
    "(SELECT count(*) FROM endpoints WHERE state <> 'active')"
)


def watch_over(path: Path) -> None:
    """Puts the witness into a database."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TRIGGERS)


class Witness:
    """Looks after each commit whether what changed in it is told by an event of the same commit."""

    def __init__(self, auditor: sqlite3.Connection) -> None:
        self._auditor = auditor
        self._seen = 0
        self._used: set[tuple[str, int]] = set()

    def faults_of_sending(self, operation_id: str | None, endpoint: str, now_ms: int) -> Iterator[str]:
        """Looks, at the moment of the writing, whether what is written is on disk, and hasn't been sent before.

        Each sending is announced by a line of its own, which is the newest. The reply to the first sending may come
        after the line of a resending: a process was suspended in between, or couldn't store it at once. That an effect
        is known by then stops no resending that waits for its connection. It does nothing, because only what
        the gateway does once is sent again. Any other line there is a fault: a refusal that was told would be undone.
        """
        row = self._auditor.execute(_STATE, (operation_id,)).fetchone()
        lines = self._auditor.execute(_NEWEST, (operation_id,)).fetchall()
        if len(lines) == 2 and lines[0][1] == Event.SUCCEEDED and _is_under_way(lines[1], now_ms):
            lines = lines[1:]
        state, event = None if row is None else row[0], lines[0][1] if lines else None
        is_announced = state == State.SENDING or event == Event.RESENT_TO_RESOLVE
        if not is_announced or operation_id is None:
            yield f"{endpoint} of {operation_id} is sent while its row says {(state, event)}"
            return
        line = operation_id, lines[0][0]
        if line in self._used:
            yield f"{endpoint} of {operation_id} is sent twice while its row says {(state, event)}"
        self._used.add(line)

    def faults_of_commit(self) -> Iterator[str]:
        """Looks at what was committed since it was asked last."""
        last = self._auditor.execute(_LAST).fetchone()[0]
        if last == self._seen:
            return
        for subject, type_ in self._auditor.execute(_UNTOLD, (self._seen,)).fetchall():
            if type_ == WITHDRAWN:
                continue  # a page that is told to nobody may be withdrawn; whether it was is seen at the end
            yield f"{subject} came to {type_} in a commit without its event"
        self._seen = last

    def faults_of_events(self, received: dict[str, list[str]] | None, given_out: Container[str]) -> Iterator[str]:
        """Looks at all events when all is over.

        ``given_out`` are the checkouts that somebody was told of. ``received`` are the ids that each endpoint got, in
        their order; None where none was waited for.
        """
        events = self._auditor.execute(_EVENTS).fetchall()
        changes: dict[str, list[str]] = defaultdict(list)
        told: dict[str, list[str]] = defaultdict(list)
        for subject, type_ in self._auditor.execute(_CHANGES):
            changes[subject].append(type_)
        for _, subject, type_, _ in events:
            if type_ not in UNCHANGING:
                told[subject].append(type_)
        for subject, _ in self._auditor.execute(_UNTOLD, (0,)):
            changes[subject].remove(WITHDRAWN)
            if subject.removeprefix("checkout:") in given_out:
                yield f"{subject} was given out, and withdrawn without an event"
        for subject, types in changes.items():
            # What comes late to an operation that needs a person is told again; any other state once.
            if [type_ for type_, _ in groupby(told[subject])] != [type_ for type_, _ in groupby(types)]:
                yield f"{subject} went through {types}, and {told[subject]} was told of it"
            if not subject.startswith("operation:") and len(told[subject]) != len(types):
                yield f"{subject} was told of twice: {told[subject]}"
        if received is None:
            return
        unpublished, undelivered, stopped = self._auditor.execute(_WAITING).fetchone()
        if unpublished or undelivered or stopped:
            yield f"{unpublished} events have no position, {undelivered} were not delivered, {stopped} endpoints stand"
        yield from _faults_of_receiving(events, received)


def _is_under_way(line: tuple[int, str | None, int], now_ms: int) -> bool:
    """Tells whether a line announces a resending that may still go out."""
    _, event, at_ms = line
    return event == Event.RESENT_TO_RESOLVE and now_ms <= at_ms + SEND_WITHIN_S * 1000


def _faults_of_receiving(events: list[tuple[str, str, str, str]], received: dict[str, list[str]]) -> Iterator[str]:
    """Each endpoint got each of its principal's events from its registration on, those of a subject in their order."""
    for number, (endpoint_id, _, registered, principal) in enumerate(events):
        if registered != "registered":
            continue
        firsts = list(dict.fromkeys(received.get(endpoint_id, [])))
        place = {event_id: at for at, event_id in enumerate(firsts)}
        last: dict[str, int] = {}
        for event_id, subject, type_, told in events[number + 1 :]:
            if told != principal or type_ == "registered":
                continue
            if event_id not in place:
                yield f"{endpoint_id} never got {type_} of {subject}"
            elif place[event_id] < last.get(subject, -1):
                yield f"{endpoint_id} got {type_} of {subject} before what came before it"
            last[subject] = max(place.get(event_id, -1), last.get(subject, -1))
