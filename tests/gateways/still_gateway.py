"""A gateway that nothing leaves and nothing comes from: every member of the interface, for doubles to begin with."""

from typing import Final

from payrelay.clock import Clock
from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind, Reading
from payrelay.core.payments.payment import NoObservation, Observation, Payment
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.gateways.gateway import (
    CheckoutForm,
    CheckResult,
    ExpectedReply,
    Headers,
    HostedPage,
    NoCheckout,
    ReceivedNotification,
    Sending,
    UnreadableNotification,
)
from payrelay.gateways.pacing.rate_limiter import Priority, RateLimiter, Timer, loop_timer
from payrelay.gateways.payhere.account import capabilities_of
from payrelay.gateways.payhere.client import NOT_CONFIGURED
from payrelay.gateways.payhere.wire.checkout_forms import (
    HashAmounts,
    Merchant,
    approval_minor,
    build_form,
    signed_texts_of,
)
from payrelay.gateways.payhere.wire.notifications import received
from payrelay.gateways.payhere.wire.payment_records import payment_ids_in, payments_in, records_without
from payrelay.gateways.payhere.wire.reply_shapes import WrongShape
from payrelay.gateways.payhere.wire.subscriptions import facts_in, plans_without, records_of

MERCHANT: Final = "0123456789abcdef"


class StillGateway:
    """One account whose calls go nowhere. It reads and writes PayHere's records, forms and notifications.

    Attributes:
        signer: what its forms are signed with, and its notifications checked by; None where that isn't configured.
        signs_elsewhere: whether others sign with its secret.
        approval_amounts: amounts beside the signed one that are notified for an approval that charges nothing.
    """

    def __init__(
        self, clock: Clock, *, merchant: str = MERCHANT, limit: RateLimit | None = None, timer: Timer = loop_timer
    ) -> None:
        self.name = "gateway"
        self.environment = "sandbox"
        self.merchant = merchant
        self.timezone = "Asia/Colombo"
        self.timeout_s = 30.0
        self.queue_s = 5.0
        self.rate_limiter = RateLimiter(limit, clock, timer=timer)
        self.signer: Merchant | None = None
        self.signs_elsewhere: bool | None = False
        self.approval_amounts: frozenset[int] = frozenset()

    @property
    def capabilities(self) -> Capabilities:
        """Tells what PayHere can do."""
        is_live, is_signing = self.environment == "live", self.signer is not None
        return capabilities_of(is_live=is_live, is_signing=is_signing, signs_elsewhere=self.signs_elsewhere)

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:  # noqa: ARG002, the interface
        """Sends nothing."""
        sending.permit.release_unused()
        return Outcome(kind=OutcomeKind.NOT_SENT, code=Code.UNAVAILABLE, msg="nothing leaves here")

    async def read(
        self,
        call: Read,  # noqa: ARG002, the interface
        *,
        priority: Priority = Priority.READ,  # noqa: ARG002, the interface
        until_s: float | None = None,  # noqa: ARG002, the interface
        requester: Requester = PAYRELAY,  # noqa: ARG002, the interface
    ) -> Reading:
        """Asks nobody."""
        return Reading(code=Code.GATEWAY_UNREACHABLE, msg="nothing comes from here")

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,  # noqa: ARG002, the interface
        *,
        until_s: float,  # noqa: ARG002, the interface
        priority: Priority = Priority.RESOLUTION,  # noqa: ARG002, the interface
        requester: Requester = PAYRELAY,  # noqa: ARG002, the interface
    ) -> Observation:
        """Sees nothing, which proves nothing."""
        return NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence())

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Reads PayHere's records."""
        try:
            return payments_in(raw_data, self.timezone)
        except WrongShape:
            return None

    def payment_ids_in(self, raw_data: bytes) -> frozenset[str] | None:
        """Reads PayHere's records."""
        return payment_ids_in(raw_data)

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Reads PayHere's records."""
        of_order = raw_data if order_id is None else records_of(order_id, raw_data)
        return facts_in(of_order, self.timezone, seen_at_ms=seen_at_ms)

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Leaves some of PayHere's records out."""
        return records_without(raw_data, payment_ids)

    def without_plans(self, raw_data: bytes, subscription_ids: frozenset[str]) -> bytes:
        """Leaves some of PayHere's subscriptions out."""
        return plans_without(raw_data, subscription_ids)

    async def checkout(self, page: HostedPage) -> CheckoutForm | NoCheckout:
        """Writes PayHere's form."""
        if self.signer is None:
            return NOT_CONFIGURED
        return build_form(self.signer, page.payment, page.returns, today=page.today)

    def signed_texts(self, subject: HostedPage | Effect) -> tuple[SignedText, ...]:
        """Gives the texts that PayHere signs."""
        return signed_texts_of(subject, self._amounts)

    def is_merchant_number(self, number: str) -> bool | None:
        """Compares with the merchant that signs."""
        return None if self.signer is None else number == self.signer.merchant_id

    def is_approval_amount(self, amount_minor: int | None, currency: str) -> bool:
        """Takes the signed amount, and those that are listed."""
        return amount_minor in {approval_minor(self._amounts, currency), *self.approval_amounts}

    @property
    def _amounts(self) -> HashAmounts:
        return HashAmounts() if self.signer is None else self.signer.amounts

    def notification(self, headers: Headers, body: bytes) -> ReceivedNotification | UnreadableNotification:  # noqa: ARG002, the interface
        """Reads PayHere's form."""
        return received(body, self.signer)

    async def check(self) -> list[CheckResult]:
        """Finds nothing."""
        return []

    async def close(self) -> None:
        """Closes the budget."""
        await self.rate_limiter.close()
