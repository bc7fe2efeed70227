"""The one interface of a gateway: the calls that flows make, and the values that flows and adapters exchange.

Rules:

1. No method raises, except that a cancelled caller gets CancelledError. A failure is an outcome, a reading, an
   observation or a check result.
2. The gateway ends every permit that it gets with a sending, whatever happens.
3. An outcome is *not sent* only where no byte of the effect left, and *not executed* only where the gateway did
   nothing.
4. A gateway may say of an idempotency key alone that it is in use, or was used with another call. That proves nothing
   about the first sending, whose outcome is unknown.
5. No value here has a gateway's field name, number or word. ``capabilities`` tells flows what else they must know of a
   gateway.

A new gateway is an adapter with this interface, and a line in the registry. ``tests/gateways/test_gateway_contract.py``
is the contract, which every adapter and every test double passes.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

import msgspec

from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.checkouts.hosted_payment import HostedPayment
from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.notifications.notification import Authenticity, NotificationContent
from payrelay.core.outcomes import Evidence, Outcome, Reading
from payrelay.core.payments.payment import Observation, Payment
from payrelay.core.secret import STARS
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.gateways.pacing.rate_limiter import PAYRELAY, Permit, Priority, RateLimiter, Requester

Headers: TypeAlias = Mapping[str, str]
"""The headers of a request: names in lower case. Several values of one name are joined by ", "."""

NO_HEADERS: Final[Headers] = MappingProxyType({})


class EffectCause(StrEnum):
    """The causes in an outcome's evidence on which flows decide. All other causes are for operators."""

    ALREADY_CAPTURED = "already_captured"
    """The gateway says that this authorization was captured before."""
    ALREADY_VOIDED = "already_released"
    """The gateway says that this authorization was voided before."""
    ALREADY_CANCELLED = "already_cancelled"
    """The gateway says that this subscription was cancelled before."""
    NO_SUCH_AUTHORIZATION = "no_such_hold"
    """The gateway knows no such authorization."""


class ExpectedReply(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a reply must match beside those of the call; None where a value isn't known.

    For a capture: the order and currency of the authorization, and the amount that it reserves.
    """

    order_id: str | None = None
    currency: str | None = None
    amount_minor: int | None = None


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """The permission to send one effect.

    Attributes:
        operation_id: the operation that the effect belongs to, and no other one; equal each time that the operation is
            sent. A gateway that keeps idempotency keys gets it as the key.
        permit: a permit of the gateway's budget, which the gateway ends.
        send_by_s: the gateway sends nothing after this time, by ``clock.boot_s``.
        journal_resend: journals a second sending before it is made. Any answer but True forbids the sending.
        notify_url: goes into a charge that names none itself.
    """

    operation_id: str
    permit: Permit
    send_by_s: float
    journal_resend: Callable[[Evidence], Awaitable[bool]]
    notify_url: str | None = None


class ReturnUrls(msgspec.Struct, frozen=True, kw_only=True):
    """Payrelay's addresses for the gateway: where it sends the browser back to, and where it posts its notification."""

    return_url: str
    cancel_url: str
    notify_url: str


class HostedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the gateway's page, to which a customer is to be sent.

    Attributes:
        checkout_id: our checkout, equal each time that its page is shown. A gateway that must be asked for its page is
            asked under this key, so that a page that is shown twice is no second payment.
        payment: the payment, approval or authorization that the customer is asked for.
        returns: addresses of Payrelay's.
        today: the current day at the gateway.
    """

    checkout_id: str
    payment: HostedPayment
    returns: ReturnUrls
    today: date


class CheckoutForm(msgspec.Struct, frozen=True, kw_only=True):
    """A form that the customer's browser posts: its address, and its fields in their order."""

    action: str
    fields: dict[str, str]

    def __repr__(self) -> str:
        return f"CheckoutForm(action={self.action!r}, fields={STARS})"


class CheckoutRedirect(msgspec.Struct, frozen=True, kw_only=True):
    """An address to which the customer's browser is sent."""

    url: str

    def __repr__(self) -> str:
        return f"CheckoutRedirect({STARS})"


class NoCheckout(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway's page can't be had now; ``code`` and ``msg`` say why."""

    code: Code
    msg: str


class ReceivedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that was read: whether the gateway sent it, and its content in our words."""

    authenticity: Authenticity
    content: NotificationContent


class UnreadableNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is no notification. The reason names fields, and quotes no value."""

    reason: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: its subject, whether it passed, and a sentence for the operator.

    ``is_warning`` marks what works, and should be changed all the same.
    """

    subject: str
    is_right: bool
    text: str
    is_warning: bool = False


class Gateway(Protocol):
    """One configured account at a gateway."""

    @property
    def name(self) -> str:
        """The account's name, which is the first segment of its paths."""

    @property
    def environment(self) -> str:
        """``sandbox`` or ``live``."""

    @property
    def merchant(self) -> str:
        """16 hex digits, equal for one merchant under every account name."""

    @property
    def timezone(self) -> str:
        """The time zone of the gateway's days and dates."""

    @property
    def timeout_s(self) -> float:
        """The longest that one call takes, in seconds."""

    @property
    def queue_s(self) -> float:
        """The longest wait for a permit, in seconds."""

    @property
    def rate_limiter(self) -> RateLimiter:
        """The rate limiter that gives out the permits of the account's budget."""

    @property
    def capabilities(self) -> Capabilities:
        """The gateway's capabilities for this account. They hardly ever change while the program runs."""

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Sends an effect, and gives its outcome. Sends it a second time only where the first sending did nothing.

        ``sending.journal_resend`` journals the second sending before it is made. The permit is ended when this returns
        or is cancelled. A call that is cancelled may have been sent.
        """

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,
        until_s: float | None = None,
        requester: Requester = PAYRELAY,
    ) -> Reading:
        """Makes a read, for whom ``requester`` says, out of that one's share of the budget.

        Waits for a permit until ``until_s`` (by ``clock.boot_s``); if it is None, for ``queue_s``.
        """

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Makes a status inquiry about payments. A gateway that couldn't be asked gives ``NoObservation``."""

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Reads the payments in a reading's data; None where it is no list of payments or one of them is incomplete."""

    def payment_ids_in(self, raw_data: bytes) -> frozenset[str] | None:
        """Reads the numbers of the payments in a reading's data; None where it is no list, or one can't be read."""

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Reads the facts about subscriptions in a reading's data, as of the time at which the gateway was asked.

        With ``order_id``, reads only the subscriptions of that order. An incomplete record gives no fact; the other
        records do.
        """

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Removes payments from a reading's data, and leaves the others byte for byte; None where no payment is left.

        A payment whose number can't be read is removed too, because its owner can't be found.
        """

    def without_plans(self, raw_data: bytes, subscription_ids: frozenset[str]) -> bytes:
        """Removes subscriptions from a reading's data, by their ids; may leave an empty list.

        The others stay byte for byte. A subscription whose number or order can't be read is removed too, because its
        owner can't be found.
        """

    async def checkout(self, page: HostedPage) -> CheckoutForm | CheckoutRedirect | NoCheckout:
        """Gives the way to the gateway's page for one checkout. May be repeated: one checkout is paid once."""

    def signed_texts(self, subject: HostedPage | Effect) -> tuple[SignedText, ...]:
        """Gives the texts that the gateway signs once it gets this form or this call.

        They are as of ``today`` for a page. There are none at a gateway whose signatures tell fields apart, for a page
        that is an address, and for a call of which no notification proves anything.
        """

    def is_merchant_number(self, number: str) -> bool | None:
        """Tells whether the gateway knows the account's merchant by a number; None where no number is configured."""
        ...

    def is_approval_amount(self, amount_minor: int | None, currency: str) -> bool:
        """Tells whether the gateway may notify this amount for an approval that charges nothing."""

    def notification(self, headers: Headers, body: bytes) -> ReceivedNotification | UnreadableNotification:
        """Reads a notification, and judges its authenticity.

        Authenticity is judged on the request as it came, with its headers, and is stored: a notification that was
        genuine then stays genuine. Headers are not stored. A stored notification is read again with NO_HEADERS, for its
        content alone. A notification that was *not* genuine can become genuine later only where the body alone proves
        it, after a secret was corrected. A gateway that signs by a header sends such a notification again.
        """

    async def check(self) -> list[CheckResult]:
        """Checks the account without changing anything, and gives the results in plain words."""

    async def close(self) -> None:
        """Closes all connections. Calls under way are lost. May be repeated."""
