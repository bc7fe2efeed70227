"""Notifications: what is told to a merchant's notify_url, when, and what became of each attempt.

Pure like the world: nothing here sends. Who sends takes what is due and notes what came of it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from payrelay_simulator.draws import Numbers
from payrelay_simulator.errors import ControlError
from payrelay_simulator.notification_faults import (
    AFTER_RETURN_S_DEFAULT,
    WAIT_S_DEFAULT,
    Flow,
    NotificationFault,
    NotificationFaults,
)
from payrelay_simulator.records import Merchant
from payrelay_simulator.signature import md5sig, spoiled
from payrelay_simulator.switches import Switches

# The oldest go first; a day of tests makes far fewer.
NOTIFICATIONS_KEPT_MAX = 100_000

# *waiting* has a time at which it goes out; *held* has none until somebody releases it; *lost* was never meant to go.
NotificationState = Literal["waiting", "held", "sending", "delivered", "failed", "lost"]

SIGNED = ("merchant_id", "order_id", "payhere_amount", "payhere_currency", "status_code")

HTTP_GOOD = range(200, 300)

DEFAULTS = Switches()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be told to whom. The fields are in their order on the wire; md5sig follows status_code."""

    flow: Flow
    notify_url: str
    fields: Mapping[str, str]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One sending. `http_status` is None where no answer came; `error` then says why."""

    at: datetime
    http_status: int | None = None
    error: str | None = None
    took_s: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether it was answered with 2xx."""
        return self.http_status in HTTP_GOOD


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification with its history. `fault` says how it misbehaves, `copy_of` of which one it is a copy."""

    number: int
    at: datetime
    flow: Flow
    notify_url: str
    fields: dict[str, str]
    state: NotificationState
    send_at: datetime | None
    fault: str | None = None
    copy_of: int | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def order_id(self) -> str:
        """The order that it tells of."""
        return self.fields["order_id"]


class Notifications:
    """All notifications of a world, in the order in which they were planned."""

    def __init__(self, merchants: tuple[Merchant, ...] = ()) -> None:
        self.faults = NotificationFaults()
        self._secrets = {merchant.merchant_id: merchant.merchant_secret for merchant in merchants}
        self._all: dict[int, Notification] = {}
        self._numbers = Numbers(1)
        # How often anything of them has changed.
        self.changes = 0
        # Those that are not over, by number; what waits for others or for the payer's return is there too.
        self._open: dict[int, Notification] = {}
        self._behind: dict[int, int] = {}
        self._until_return: dict[int, float] = {}

    @property
    def total(self) -> int:
        """How many there are that were not forgotten."""
        return len(self._all)

    def plan(
        self, now: datetime, message: Message, *, send_at: datetime | None = None, switches: Switches = DEFAULTS
    ) -> tuple[int, ...]:
        """Plan a notification as its misbehaviour wants it and return the numbers given; none without an address."""
        if not message.notify_url:
            return ()
        fault = self.faults.draw(message.flow, message.fields)
        fields = self.signed(_as_switched(message.fields, switches))
        send_at = now if send_at is None else send_at
        base = Notification(
            number=0,
            at=now,
            flow=message.flow,
            notify_url=message.notify_url,
            fields=fields,
            state="waiting",
            send_at=send_at,
            fault=None if fault is None else fault.name,
        )
        return tuple(self._misbehaving(base, send_at, fault))

    def _misbehaving(self, base: Notification, send_at: datetime, fault: NotificationFault | None) -> list[int]:
        if fault is None or fault.name == "before_return":
            return [self._put(base)]
        if fault.name == "duplicate":
            step = timedelta(seconds=fault.args.wait_s or 0.0)
            first = self._put(base)
            copy = msgspec.structs.replace(base, copy_of=first)
            return [first, *(self._put(copy, send_at + step * (n + 1)) for n in range(fault.args.copies))]
        if fault.name == "forged":
            forged = msgspec.structs.replace(base, fields=self.forged(base.fields, fault))
            genuine = msgspec.structs.replace(base, fault=None)
            return [self._put(forged), *([self._put(genuine)] if fault.args.is_extra else [])]
        if fault.name in {"lost", "held"}:
            state: NotificationState = "lost" if fault.name == "lost" else "held"
            return [self._put(msgspec.structs.replace(base, state=state, send_at=None))]
        # What waits for others or for the payer goes out alone after a while, so that nothing waits for ever.
        wait_s = WAIT_S_DEFAULT
        if fault.name != "after_return" and fault.args.wait_s is not None:
            wait_s = fault.args.wait_s
        number = self._put(base, send_at + timedelta(seconds=wait_s))
        if fault.name == "reordered":
            self._behind[number] = fault.args.behind
        elif fault.name == "after_return":
            given_s = fault.args.wait_s
            self._until_return[number] = AFTER_RETURN_S_DEFAULT if given_s is None else given_s
        return [number]

    def _put(self, notification: Notification, send_at: datetime | None = None) -> int:
        number = next(self._numbers)
        changed = {} if send_at is None else {"send_at": send_at}
        self._keep(msgspec.structs.replace(notification, number=number, **changed))
        while len(self._all) > NOTIFICATIONS_KEPT_MAX:
            oldest = next(iter(self._all))
            del self._all[oldest]
            self._open.pop(oldest, None)
        return number

    def _keep(self, notification: Notification) -> None:
        self.changes += 1
        self._all[notification.number] = notification
        if notification.state in {"waiting", "held", "sending"}:
            self._open[notification.number] = notification
        else:
            self._open.pop(notification.number, None)

    def send_again(self) -> None:
        """Let those wait that were being sent when a kept world was written: nobody knows what became of them."""
        for notification in [each for each in self._open.values() if each.state == "sending"]:
            self._keep(msgspec.structs.replace(notification, state="waiting", send_at=notification.at))

    def signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Return the fields with the signature over five of them, right behind the status."""
        secret = self._secrets.get(fields["merchant_id"], "")
        signature = md5sig(*(fields[name] for name in SIGNED), merchant_secret=secret)
        result: dict[str, str] = {}
        for name, value in fields.items():
            if name != "md5sig":
                result[name] = value
            if name == "status_code":
                result["md5sig"] = signature
        return result

    def forged(self, fields: Mapping[str, str], fault: NotificationFault) -> dict[str, str]:
        """Return the fields as a forger would send them."""
        if not fault.args.fields:
            return {**fields, "md5sig": spoiled(fields["md5sig"])}
        changed = {**fields, **fault.args.fields}
        return self.signed(changed) if fault.args.is_signed and "md5sig" not in fault.args.fields else changed

    def take_due(self, now: datetime) -> list[Notification]:
        """Take what is to be sent by now, the earliest first; each must be noted with `note` afterwards."""
        due = [each for each in self._open.values() if each.state == "waiting" and each.send_at and each.send_at <= now]
        due.sort(key=lambda each: (each.send_at or now, each.number))
        for each in due:
            self._keep(msgspec.structs.replace(each, state="sending"))
        return due

    def note(self, number: int, attempt: Attempt, switches: Switches) -> None:
        """Note what came of a sending; one without a good answer is planned again as the switches say."""
        present = self._all.get(number)
        if present is None:
            return
        attempts = (*present.attempts, attempt)
        noted = msgspec.structs.replace(present, attempts=attempts, state="failed", send_at=None)
        if attempt.is_good:
            noted = msgspec.structs.replace(noted, state="delivered")
        elif len(attempts) <= switches.notification_retries:
            send_at = attempt.at + timedelta(seconds=switches.notification_retry_interval_s)
            noted = msgspec.structs.replace(noted, state="waiting", send_at=send_at)
        self._keep(noted)
        self._pass(noted, attempt.at)

    def _pass(self, passing: Notification, now: datetime) -> None:
        """Let those go that waited for so many others to go first."""
        for number, left in list(self._behind.items()):
            waiting = self._open.get(number)
            if number == passing.number or waiting is None:
                self._behind.pop(number)
            elif waiting.notify_url == passing.notify_url:
                self._behind[number] = left - 1
                if left == 1:
                    self._behind.pop(number)
                    self._keep(msgspec.structs.replace(waiting, send_at=now))

    def is_over(self, number: int) -> bool:
        """Say whether its first attempt has been made, or will never be."""
        notification = self._all.get(number)
        return notification is None or bool(notification.attempts) or notification.state == "lost"

    def find(self, number: int) -> Notification:
        """Return one of them; a ControlError where there is none of that number."""
        if number not in self._all:
            raise ControlError("number", "is no notification")
        return self._all[number]

    def payer_returned(self, numbers: tuple[int, ...], now: datetime) -> None:
        """Let those go that wait until the payer has been sent on to the merchant."""
        for number in numbers:
            wait_s = self._until_return.pop(number, None)
            present = self._open.get(number)
            if wait_s is not None and present is not None and present.state == "waiting":
                send_at = now + timedelta(seconds=wait_s)
                self._keep(msgspec.structs.replace(present, send_at=send_at))

    def release(self, now: datetime, number: int | None = None) -> int:
        """Let everything go that is held or waits, or only the one of that number; return how many."""
        found = [each for each in self._open.values() if number in {None, each.number} and each.state != "sending"]
        for each in found:
            self._keep(msgspec.structs.replace(each, state="waiting", send_at=now))
        return len(found)

    def resend(
        self, now: datetime, number: int, fields: Mapping[str, str], *, is_signed: bool = False, times: int = 1
    ) -> tuple[int, ...]:
        """Send a notification once more, whatever became of it, with other values in some fields if wanted."""
        present = self.find(number)
        changed = {**present.fields, **fields}
        copy = msgspec.structs.replace(
            present,
            at=now,
            fields=self.signed(changed) if is_signed else changed,
            state="waiting",
            fault="resent",
            copy_of=number,
            attempts=(),
        )
        return tuple(self._put(copy, now) for _ in range(times))

    def records(
        self, *, after: int = 0, count: int | None = None, order_id: str | None = None
    ) -> tuple[Notification, ...]:
        """Return those numbered above `after`, at most `count` of them, of one order if wanted."""
        found = [each for each in self._all.values() if each.number > after and order_id in {None, each.order_id}]
        return tuple(found[:count])


def _as_switched(fields: Mapping[str, str], switches: Switches) -> Mapping[str, str]:
    """Return the fields with the card's expiry as the switch has it; no signature covers it."""
    expiry = fields.get("card_expiry", "")
    if switches.card_expiry == "MMYY" or not expiry.isdigit():
        return fields
    return {**fields, "card_expiry": f"{expiry[:2]}/{expiry[2:]}"}
