"""The one face of a gateway: what the flows ask of it, and the values that both sides speak.

Rules:

1. Nothing of a gateway raises, except that who cancels is cancelled: what went wrong is an outcome, a reading, a sight
   or a finding.
2. A place that is handed over with a sending is ended by the gateway, whatever happens.
3. *Not sent* is said only where not a byte of the effect left, *not executed* only where the gateway did nothing.
4. What a gateway says of a key alone (it is in use, it was used with another call) tells nothing of the first
   sending: its outcome is unknown.
5. No value here has a provider's field name, number or word. What flows must know of a provider beyond these calls is
   told by ``capabilities``.

A provider is added by an adapter that has this face, and a line in the registry. The contract is a suite of tests that
every adapter and every test double passes (``tests/gateways/test_gateway_contract.py``).
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
from payrelay.core.notifications.notification import Authenticity, NotificationContent
from payrelay.core.outcomes import Evidence, Outcome, Reading
from payrelay.core.payments.payment import Observation, Payment
from payrelay.core.secret import STARS
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.gateways.pacing.rate_limiter import Permit, Priority, RateLimiter

Headers: TypeAlias = Mapping[str, str]
"""The headers of a request: names in small letters; of one that came more than once, all values, joined by ", "."""

NO_HEADERS: Final[Headers] = MappingProxyType({})


class EffectCause(StrEnum):
    """The causes in an outcome's evidence that flows look at; all others are for people."""

    ALREADY_CAPTURED = "already_captured"
    """The gateway says that this hold was captured before."""
    ALREADY_VOIDED = "already_released"
    """The gateway says that this hold was let go of before."""
    ALREADY_CANCELLED = "already_cancelled"
    """The gateway says that this subscription was cancelled before."""
    NO_SUCH_AUTHORIZATION = "no_such_hold"
    """The gateway knows no such hold."""


class ExpectedReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply must match beyond what the call itself says; None where it isn't known.

    For a capture: the order and currency of the authorization, and the amount that it holds.
    """

    order_id: str | None = None
    currency: str | None = None
    amount_minor: int | None = None


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """The permission to send one effect.

    Attributes:
        operation_id: of the operation that it is sent for: the same each time that one operation is sent, and never
            another one's. Goes to the gateway as its idempotency key, where it keeps such keys.
        permit: in the gateway's budget; ended by the gateway.
        send_by_s: nothing of it is sent after this time, by ``clock.boot_s``.
        is_retry: journals that it is about to be sent once more; anything but True forbids it.
        notify_url: goes into a charge that names none itself.
    """

    operation_id: str
    permit: Permit
    send_by_s: float
    is_retry: Callable[[Evidence], Awaitable[bool]]
    notify_url: str | None = None


class ReturnUrls(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of ours: where the gateway sends the browser back to, and where it sends its notification."""

    return_url: str
    cancel_url: str
    notify_url: str


class HostedPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of the gateway that a customer is to be sent to.

    Attributes:
        checkout_id: of our checkout: the same each time that its page is shown. A gateway that has to be asked for its
            page is asked under this key, so that a page that is shown twice is no second payment.
        payment: the payment, approval or authorization that the customer is asked for.
        returns: addresses of ours.
        today: the day at the gateway.
    """

    checkout_id: str
    payment: HostedPayment
    returns: ReturnUrls
    today: date


class CheckoutForm(msgspec.Struct, frozen=True, kw_only=True):
    """A form to be posted by the customer's browser: its address and its fields in their order."""

    action: str
    fields: dict[str, str]

    def __repr__(self) -> str:
        return f"CheckoutForm(action={self.action!r}, fields={STARS})"


class CheckoutRedirect(msgspec.Struct, frozen=True, kw_only=True):
    """An address that the customer's browser is sent to."""

    url: str

    def __repr__(self) -> str:
        return f"CheckoutRedirect({STARS})"


class NoCheckout(msgspec.Struct, frozen=True, kw_only=True):
    """There is no page of the gateway to be had now; ``code`` and ``msg`` say why."""

    code: Code
    msg: str


class ReceivedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that was read: who it is from, and what it says in our words."""

    authenticity: Authenticity
    content: NotificationContent


class UnreadableNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is no notification; the reason holds nothing of it but names of fields."""

    reason: str


class CheckFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was tried: what, whether it is right, and a sentence for people.

    ``is_warning`` is for what works, and is better changed all the same.
    """

    subject: str
    is_right: bool
    text: str
    is_warning: bool = False


class Gateway(Protocol):
    """One configured account at a gateway."""

    @property
    def name(self) -> str:
        """The account's name, as it stands in our paths."""
        ...

    @property
    def environment(self) -> str:
        """``sandbox`` or ``live``."""
        ...

    @property
    def merchant(self) -> str:
        """16 hex digits: the same for the same merchant under every name."""
        ...

    @property
    def timezone(self) -> str:
        """The zone of the gateway's days and dates."""
        ...

    @property
    def timeout_s(self) -> float:
        """The longest that one call takes."""
        ...

    @property
    def queue_s(self) -> float:
        """The longest wait for a place in the budget."""
        ...

    @property
    def rate_limiter(self) -> RateLimiter:
        """Gives out the places in the account's budget."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the gateway can do for this account; as good as constant while the program runs."""
        ...

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Sends an effect, and says what it came to. It is sent a second time only where the first did nothing.

        The second sending is journaled by ``sending.is_retry`` before. The permit is ended when this returns, and when
        it is cancelled; a call that is cancelled may have been sent.
        """
        ...

    async def read(self, call: Read, *, priority: Priority = Priority.READ, until_s: float | None = None) -> Reading:
        """Makes a read. Waits for a place until then (by ``clock.boot_s``), without a moment for the usual time."""
        ...

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.RESOLUTION,
    ) -> Observation:
        """Looks at payments, to prove something by them. That the gateway could not be asked is *unseen*."""
        ...

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Reads the payments in a reading's data; None where it is no list of them, or one of them is not whole."""
        ...

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Reads what a reading's data shows of subscriptions, as of the moment of the question.

        With ``order_id`` only those of one order. A record that is not whole tells nothing; the others do.
        """
        ...

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Leaves payments out of a reading's data, the others byte for byte; None where none is left.

        A payment whose number can't be read is left out too: nobody knows whose it is.
        """
        ...

    async def checkout(self, page: HostedPage) -> CheckoutForm | CheckoutRedirect | NoCheckout:
        """Gives the way to the gateway's page for one checkout. May be repeated: the same checkout is paid once."""
        ...

    def notification(self, headers: Headers, body: bytes) -> ReceivedNotification | UnreadableNotification:
        """Reads a notification, and tells who it is from.

        The verdict is given on the request as it came, with its headers; it is stored, and a notification that was
        genuine then stays so. Headers are not kept: a stored one is read again with NO_HEADERS, for its news alone.
        One that was *not* genuine can become so later only where the body alone proves it (a secret was mended
        meanwhile); a gateway that signs by a header sends such a one again.
        """
        ...

    async def check(self) -> list[CheckFinding]:
        """Tries the account out, without changing anything, and tells in plain words what works and what doesn't."""
        ...

    async def close(self) -> None:
        """Closes all connections; calls under way are lost. May be repeated."""
        ...
