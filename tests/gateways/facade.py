"""A gateway that passes everything on to another one, for doubles that do one thing otherwise."""

from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import Outcome, Reading
from payrelay.core.payments.payment import Observation, Payment
from payrelay.core.subscriptions.subscription import Fact
from payrelay.gateways.gateway import (
    CheckoutForm,
    CheckoutRedirect,
    CheckResult,
    ExpectedReply,
    Gateway,
    Headers,
    HostedPage,
    NoCheckout,
    ReceivedNotification,
    Sending,
    UnreadableNotification,
)
from payrelay.gateways.pacing.rate_limiter import Priority


class GatewayFacade:
    """Passes every call on to another gateway; a double overrides what it does otherwise."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.name = gateway.name
        self.environment = gateway.environment
        self.merchant = gateway.merchant
        self.timezone = gateway.timezone
        self.timeout_s = gateway.timeout_s
        self.queue_s = gateway.queue_s
        self.rate_limiter = gateway.rate_limiter

    @property
    def capabilities(self) -> Capabilities:
        """Tells what the other one can do."""
        return self._gateway.capabilities

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Passes it on."""
        return await self._gateway.effect(call, expected, sending)

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,
        until_s: float | None = None,
        requester: Requester = PAYRELAY,
    ) -> Reading:
        """Passes it on."""
        return await self._gateway.read(call, priority=priority, until_s=until_s, requester=requester)

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Passes it on."""
        return await self._gateway.inquire(call, until_s=until_s, priority=priority, requester=requester)

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Passes it on."""
        return self._gateway.payments_in(raw_data)

    def payment_ids_in(self, raw_data: bytes) -> frozenset[str] | None:
        """Passes it on."""
        return self._gateway.payment_ids_in(raw_data)

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Passes it on."""
        return self._gateway.subscriptions_in(raw_data, seen_at_ms=seen_at_ms, order_id=order_id)

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Passes it on."""
        return self._gateway.without(raw_data, payment_ids)

    def without_plans(self, raw_data: bytes, subscription_ids: frozenset[str]) -> bytes:
        """Passes it on."""
        return self._gateway.without_plans(raw_data, subscription_ids)

    async def checkout(self, page: HostedPage) -> CheckoutForm | CheckoutRedirect | NoCheckout:
        """Passes it on."""
        return await self._gateway.checkout(page)

    def signed_texts(self, subject: HostedPage | Effect) -> tuple[SignedText, ...]:
        """Passes it on."""
        return self._gateway.signed_texts(subject)

    def is_merchant_number(self, number: str) -> bool | None:
        """Asks the gateway behind."""
        return self._gateway.is_merchant_number(number)

    def is_approval_amount(self, amount_minor: int | None, currency: str) -> bool:
        """Passes it on."""
        return self._gateway.is_approval_amount(amount_minor, currency)

    def notification(self, headers: Headers, body: bytes) -> ReceivedNotification | UnreadableNotification:
        """Passes it on."""
        return self._gateway.notification(headers, body)

    async def check(self) -> list[CheckResult]:
        """Passes it on."""
        return await self._gateway.check()

    async def close(self) -> None:
        """Passes it on."""
        await self._gateway.close()
