"""A gateway as unlike PayHere as possible: it shows that the interface is not PayHere in disguise.

Its page is an address, made by a call of its own; it keeps idempotency keys; its notifications are JSON that a header
signs; its records have other names, other words and another zone.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.calls import AllSubscriptions, Charge, Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.notifications.notification import Authenticity, NotificationContent, NotificationKind, ReportedStatus
from payrelay.core.outcomes import Evidence, Facts, Outcome, Reading
from payrelay.core.outcomes import OutcomeKind as EffectVerdict
from payrelay.core.payments.payment import NothingShown, Observation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.gateways.gateway import (
    CheckoutRedirect,
    CheckResult,
    ExpectedReply,
    Headers,
    HostedPage,
    ReceivedNotification,
    Sending,
    UnreadableNotification,
)
from payrelay.gateways.pacing.rate_limiter import Priority, RateLimiter

SIGNATURE: Final = "tide-signature"
SECRET: Final = b"whsec_tide"
KEYS_KEPT_MS: Final = 24 * 3_600_000
STATUSES: Final = {
    "captured": PaymentStatus.RECEIVED,
    "returned": PaymentStatus.REFUNDED,
    "held": PaymentStatus.AUTHORIZED,
}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A payment as this gateway shows it."""

    id: str
    reference: str
    state: str
    minor: int
    cur: str
    made: str
    note: str = ""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A notification of this gateway."""

    event: str
    payment: Record


_records: Final = msgspec.json.Decoder(list[Record])
_webhook: Final = msgspec.json.Decoder(Webhook)


def signed(body: bytes, secret: bytes = SECRET) -> dict[str, str]:
    """Gives the headers of a notification."""
    return {"content-type": "application/json", SIGNATURE: hmac.new(secret, body, hashlib.sha256).hexdigest()}


class OtherGateway:
    """One account there, with the gateway behind it in memory.

    Attributes:
        done: what really happened, by its idempotency key.
        pages: the pages that were made, by their keys.
        records: the payments that it shows.
        lost: how many of the next replies don't come.
    """

    def __init__(self, clock: Clock) -> None:
        self.name = "gateway"
        self.environment = "live"
        self.merchant = "fedcba9876543210"
        self.timezone = "UTC"
        self.timeout_s = 10.0
        self.queue_s = 2.0
        self.rate_limiter = RateLimiter(None, clock)
        self.capabilities = Capabilities(
            keys_kept_ms=KEYS_KEPT_MS,
            finds_orders=True,
            shows_authorizations=True,
            notification_type="application/json",
        )
        self.done: dict[str, Effect] = {}
        self.pages: dict[str, str] = {}
        self.records: list[Record] = []
        self.lost = 0
        self._answers: dict[str, Outcome] = {}
        self._clock = clock

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:  # noqa: ARG002, the interface
        """Does it under its key; what was done under the key already is answered as it was then."""
        if self._clock.boot_s() > sending.send_by_s:
            sending.permit.release_unused()
            return Outcome(kind=EffectVerdict.NOT_SENT, code=Code.UNAVAILABLE, msg="too late; nothing was sent")
        key = sending.operation_id
        if key not in self.done:
            self.done[key] = call
            self._answers[key] = self._do(call)
        sending.permit.done()
        if self.lost:
            self.lost -= 1
            return Outcome(kind=EffectVerdict.UNKNOWN, code=Code.OUTCOME_UNKNOWN, msg="no reply came")
        return self._answers[key]

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,  # noqa: ARG002, the interface
        until_s: float | None = None,  # noqa: ARG002, the interface
        requester: Requester = PAYRELAY,  # noqa: ARG002, the interface
    ) -> Reading:
        """Shows the records of an order; of subscriptions it knows nothing."""
        if not isinstance(call, PaymentsOfOrder):
            is_list = isinstance(call, AllSubscriptions)
            return Reading(code=None if is_list else Code.NOT_FOUND, msg="none", raw_data=b"[]" if is_list else None)
        found = [record for record in self.records if record.reference == call.order_id]
        data = msgspec.json.encode(found)
        return Reading(code=None if found else Code.NOT_FOUND, msg="done", raw_msg=b'"done"', raw_data=data)

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Shows the same as payments of ours."""
        reading = await self.read(call, priority=priority, until_s=until_s, requester=requester)
        payments = self.payments_in(reading.raw_data or b"")
        return PaymentsSeen(payments=payments, evidence=Evidence()) if payments else NothingShown(evidence=Evidence())

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Reads records."""
        try:
            return tuple(_payment(record) for record in _records.decode(raw_data))
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def payment_ids_in(self, raw_data: bytes) -> frozenset[str] | None:
        """Reads the numbers."""
        try:
            records = msgspec.json.decode(raw_data, type=list[Record])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return frozenset(record.id for record in records)

    def subscriptions_in(
        self,
        raw_data: bytes,  # noqa: ARG002, the interface
        *,
        seen_at_ms: int,  # noqa: ARG002, the interface
        order_id: str | None = None,  # noqa: ARG002, the interface
    ) -> tuple[Fact, ...]:
        """Knows none."""
        return ()

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Leaves records out."""
        try:
            records = msgspec.json.decode(raw_data, type=list[msgspec.Raw])
            left = [raw for raw in records if msgspec.json.decode(raw, type=Record).id not in payment_ids]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return b"[" + b",".join(map(bytes, left)) + b"]" if left else None

    def without_plans(self, raw_data: bytes, subscription_ids: frozenset[str]) -> bytes:  # noqa: ARG002, the interface
        """Knows none."""
        return b"[]"

    async def checkout(self, page: HostedPage) -> CheckoutRedirect:
        """Makes a page, once for each checkout."""
        url = self.pages.setdefault(page.checkout_id, f"https://tide.example/p/{len(self.pages) + 1}")
        return CheckoutRedirect(url=url)

    def signed_texts(self, subject: HostedPage | Effect) -> tuple[SignedText, ...]:  # noqa: ARG002, the interface
        """Gives none: a header signs the whole notification."""
        return ()

    def is_merchant_number(self, number: str) -> bool | None:  # noqa: ARG002, the interface
        """Has no numbers for merchants."""
        return None

    def is_approval_amount(self, amount_minor: int | None, currency: str) -> bool:  # noqa: ARG002, the interface
        """Takes any amount: nobody but this gateway can have written it."""
        return True

    def notification(self, headers: Headers, body: bytes) -> ReceivedNotification | UnreadableNotification:
        """Reads JSON; its signature stands in a header."""
        try:
            told = _webhook.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return UnreadableNotification(reason="the body is not a notification")
        is_signed = hmac.compare_digest(headers.get(SIGNATURE, "").encode(), signed(body)[SIGNATURE].encode())
        content = NotificationContent(
            kind=NotificationKind.PAYMENT,
            reported=ReportedStatus.SUCCEEDED if told.event == "payment.captured" else ReportedStatus.OTHER,
            order_id=told.payment.reference,
            amount_minor=told.payment.minor,
            currency=told.payment.cur,
            payment_id=told.payment.id,
        )
        return ReceivedNotification(
            authenticity=Authenticity.GENUINE if is_signed else Authenticity.FORGED, content=content
        )

    async def check(self) -> list[CheckResult]:
        """Tells that it is there."""
        return [CheckResult(subject="account", is_right=True, text="The provider answers.")]

    async def close(self) -> None:
        """Closes the budget."""
        await self.rate_limiter.close()

    def _do(self, call: Effect) -> Outcome:
        facts = Facts()
        if isinstance(call, Charge):
            moment = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
            record = Record(
                id=str(900 + len(self.records)),
                reference=call.order_id,
                state="captured",
                minor=call.amount_minor,
                cur=call.currency,
                made=moment.isoformat(),
                note=call.items,
            )
            self.records.append(record)
            facts = Facts(
                order_id=call.order_id, payment_id=record.id, currency=call.currency, amount_minor=call.amount_minor
            )
        return Outcome(
            kind=EffectVerdict.SUCCEEDED, code=None, msg="done", raw_msg=b'"done"', raw_data=b"{}", facts=facts
        )


def _payment(record: Record) -> Payment:
    return Payment(
        payment_id=record.id,
        order_id=record.reference,
        at_ms=int(datetime.fromisoformat(record.made).timestamp() * 1000),
        description=record.note,
        status=STATUSES.get(record.state, PaymentStatus.OTHER),
        currency=record.cur,
        amount_minor=record.minor,
    )
