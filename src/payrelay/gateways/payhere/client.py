"""Calls PayHere for one configured account, and gives one outcome for every call.

No method raises, except that a cancelled caller gets CancelledError. The caller of ``effect`` has stored the intent.
Every sending was journaled before, also the second one.
"""

from typing import Final

from payrelay.clock import Clock
from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import Outcome, Reading
from payrelay.core.payments.payment import Observation, Payment
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
from payrelay.gateways.http.exchange import Network
from payrelay.gateways.pacing.rate_limiter import PAYRELAY, Priority, RateLimiter, Requester, Timer, loop_timer
from payrelay.gateways.payhere.account import Account, capabilities_of, merchant_of, signer_of
from payrelay.gateways.payhere.checks import result_of_reading, result_of_token
from payrelay.gateways.payhere.effect_sender import EffectSender
from payrelay.gateways.payhere.record_reader import RecordReader, Turn
from payrelay.gateways.payhere.tokens import Token, Tokens
from payrelay.gateways.payhere.wire.checkout_forms import approval_minor, build_form, signed_texts_of
from payrelay.gateways.payhere.wire.notifications import received
from payrelay.gateways.payhere.wire.payment_records import (
    observation_of,
    payment_ids_in,
    payments_in,
    records_without,
)
from payrelay.gateways.payhere.wire.reply_shapes import RejectedCall, WrongShape
from payrelay.gateways.payhere.wire.subscriptions import facts_in, plans_without, records_of
from payrelay.gateways.token_store import TokenStore

CHECKED_ORDER: Final = "payrelay-check"
"""An order that can't exist. A search for it needs all that a real call needs, and shows no customer's payments."""
NOT_CONFIGURED: Final = NoCheckout(code=Code.NOT_CONFIGURED, msg="MERCHANT_ID or MERCHANT_SECRET is not set")


class PayHere:
    """One configured PayHere account.

    Attributes:
        name: the first segment of the account's paths.
        environment: ``sandbox`` or ``live``.
        merchant: equal for one merchant under every name.
        rate_limiter: gives out the permits of the account's budget.
        timeout_s: the longest that one call takes.
        queue_s: the longest wait for a permit.
        timezone: the zone of the gateway's dates.
        capabilities: the gateway's capabilities for this account.

    Args:
        connections: the connections to the gateway, which the client closes.
        rate_limiter: shares its budget with other processes; None for a rate limiter of this process alone.
        token_store: shares the access token with other processes.
    """

    def __init__(
        self,
        account: Account,
        *,
        clock: Clock,
        connections: Network,
        rate_limiter: RateLimiter | None = None,
        timer: Timer = loop_timer,
        token_store: TokenStore | None = None,
    ) -> None:
        self.name = account.name
        self.environment = account.environment
        self.merchant = merchant_of(account)
        self._merchant_id = account.merchant_id
        self.rate_limiter = rate_limiter or RateLimiter(account.limit, clock, timer=timer, timeout_s=account.timeout_s)
        self.timeout_s = account.timeout_s
        self.queue_s = account.queue_s
        self.timezone = account.timezone
        self._signer = signer_of(account)
        is_live, is_signing = account.environment == "live", self._signer is not None
        self.capabilities = capabilities_of(
            is_live=is_live, is_signing=is_signing, signs_elsewhere=account.signs_elsewhere
        )
        self._amounts = account.hash_amounts
        self._approval_amounts = account.approval_amounts
        self._clock = clock
        self._connections = connections
        self._tokens = Tokens(account, self._connections.effects, self.rate_limiter, clock, token_store=token_store)
        self._sender = EffectSender(self._connections, self._tokens, self.rate_limiter, clock)
        self._reader = RecordReader(self._connections, self._tokens, self.rate_limiter, clock, account)

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Sends an effect once, or a second time where the first sending provably did nothing; gives its outcome."""
        return await self._sender.send(call, expected, sending)

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Makes a status inquiry about payments; waits for a permit until ``until_s`` (by ``clock.boot_s``)."""
        reading = await self.read(call, priority=priority, until_s=until_s, requester=requester)
        return observation_of(call, reading, self.timezone)

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,
        until_s: float | None = None,
        requester: Requester = PAYRELAY,
    ) -> Reading:
        """Makes a read, and repeats it once where the token had expired or the connection was lost.

        Waits for a permit until ``until_s`` (by ``clock.boot_s``); where it is None, for the account's ``queue_s``.
        """
        return await self._reader.read(call, Turn(priority=priority, until_s=until_s, requester=requester))

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Reads a list of payment records; None where it is none, or one of them is incomplete."""
        try:
            return payments_in(raw_data, self.timezone)
        except WrongShape:
            return None

    def payment_ids_in(self, raw_data: bytes) -> frozenset[str] | None:
        """Reads the numbers of payments in a list of records; None where one of them can't be read."""
        return payment_ids_in(raw_data)

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Reads one record or a list of records of subscriptions; with ``order_id`` only those of one order."""
        of_order = raw_data if order_id is None else records_of(order_id, raw_data)
        return facts_in(of_order, self.timezone, seen_at_ms=seen_at_ms)

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Removes payments from a list of records; None where none is left."""
        return records_without(raw_data, payment_ids)

    def without_plans(self, raw_data: bytes, subscription_ids: frozenset[str]) -> bytes:
        """Removes subscriptions from a list of records; may leave an empty list."""
        return plans_without(raw_data, subscription_ids)

    async def checkout(self, page: HostedPage) -> CheckoutForm | NoCheckout:
        """Gives the signed form, without a call to the gateway."""
        if self._signer is None:
            return NOT_CONFIGURED
        return build_form(self._signer, page.payment, page.returns, today=page.today)

    def signed_texts(self, subject: HostedPage | Effect) -> tuple[SignedText, ...]:
        """Gives the texts that PayHere signs once it gets a form of today's, or a call for an authorization."""
        return signed_texts_of(subject, self._amounts)

    def is_merchant_number(self, number: str) -> bool | None:
        """Compares with the setting MERCHANT_ID."""
        return None if self._merchant_id is None else number == self._merchant_id

    def is_approval_amount(self, amount_minor: int | None, currency: str) -> bool:
        """Takes the amount that is signed where nothing is charged, and those that a setting lists."""
        return amount_minor in {approval_minor(self._amounts, currency), *self._approval_amounts}

    def notification(self, headers: Headers, body: bytes) -> ReceivedNotification | UnreadableNotification:  # noqa: ARG002, the body is signed
        """Reads a form. The signed fields and the signature are in the body, and the headers aren't used."""
        return received(body, self._signer)

    async def check(self) -> list[CheckResult]:
        """Checks the account without changing anything, and gives the results in plain words."""
        token = await self._tokens.current(self._clock.boot_s() + self.queue_s + self.timeout_s)
        results = [result_of_token(token if isinstance(token, RejectedCall) else None)]
        if isinstance(token, Token):
            results.append(result_of_reading(await self.read(PaymentsOfOrder(order_id=CHECKED_ORDER))))
        return results

    async def close(self) -> None:
        """Closes all connections; calls under way are lost."""
        await self._tokens.close()
        await self._connections.close()
        await self.rate_limiter.close()
