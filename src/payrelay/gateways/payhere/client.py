"""Calls PayHere for one configured account, and gives one answer for every call.

Nothing here raises, except that who cancels is cancelled: what went wrong is an outcome. Whoever calls ``effect`` has
the intent on disk already; whatever is sent here was journaled before, the one resending too.
"""

from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.outcomes import Evidence, Outcome, Reading, Verdict
from payrelay.core.payments.operation import Kind
from payrelay.core.payments.payment import Payment, Sight
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.gateways.gateway import (
    CheckFinding,
    CheckoutForm,
    ExpectedReply,
    Headers,
    HostedPage,
    NoCheckout,
    Received,
    Sending,
    UnreadableNotification,
)
from payrelay.gateways.pacing.rate_limiter import Governor, Permit, Priority, Timer, loop_timer
from payrelay.gateways.payhere.account import Account, merchant_of, signer_of
from payrelay.gateways.payhere.checks import finding_of_reading, finding_of_token
from payrelay.gateways.payhere.connections import GatewayConnections, Loss, LossCause, Network, Reply
from payrelay.gateways.payhere.places import end_place, failing, take_place, used
from payrelay.gateways.payhere.tokens import Token, Tokens
from payrelay.gateways.payhere.wire import effects, reads
from payrelay.gateways.payhere.wire.forms import build_form
from payrelay.gateways.payhere.wire.notifications import received
from payrelay.gateways.payhere.wire.plans import facts_in, records_of
from payrelay.gateways.payhere.wire.records import payments_in, records_without, sight_of
from payrelay.gateways.payhere.wire.replies import Cause, InvalidToken, TurnedAway, WrongShape
from payrelay.gateways.payhere.wire.requests import WireRequest, build
from payrelay.gateways.token_shelf import TokenShelf

TOKEN_REFUSED: Final = TurnedAway(
    code=Code.GATEWAY_REFUSED_US,
    cause=Cause.INVALID_TOKEN,
    msg="the gateway does not accept the access token that it gave us; nothing was executed",
)
NOT_RESENT: Final = TurnedAway(
    code=Code.UNAVAILABLE,
    cause=Cause.INVALID_TOKEN,
    msg="the gateway turned the access token away, and it could not be sent again; nothing was executed",
)
CHECKED_ORDER: Final = "payrelay-check"
"""An order that can't exist: looking for it needs everything that a real call needs, and shows nobody's payments."""
LIVE_ONLY: Final = frozenset({"auto_cancel", "max_retries", "starts_on", "is_recovery_due"})
"""Members of a plan that the gateway's sandbox does not know."""
NOT_CONFIGURED: Final = NoCheckout(code=Code.UNAVAILABLE, msg="MERCHANT_ID or MERCHANT_SECRET is not set")


class PayHere:
    """One configured PayHere account.

    Attributes:
        name: as it stands in our paths.
        environment: ``sandbox`` or ``live``.
        merchant: the same for the same merchant under every name.
        governor: gives out the places in the account's budget.
        timeout_s: the longest that one call takes.
        queue_s: the longest wait for a place.
        timezone: of the gateway's dates.
        capabilities: what it can do for this account.

    Args:
        governor: one that shares its budget with other processes; without one, that of this process alone.
        connections: the way to the gateway; a simulation brings its own.
        shelf: where other processes find the access token.
    """

    def __init__(
        self,
        account: Account,
        *,
        clock: Clock,
        governor: Governor | None = None,
        timer: Timer = loop_timer,
        connections: Network | None = None,
        shelf: TokenShelf | None = None,
    ) -> None:
        self.name = account.name
        self.environment = account.environment
        self.merchant = merchant_of(account)
        self.governor = governor or Governor(account.limit, clock, timer=timer, timeout_s=account.timeout_s)
        self.timeout_s = account.timeout_s
        self.queue_s = account.queue_s
        self.timezone = account.timezone
        self._signer = signer_of(account)
        is_live, is_signing = account.environment == "live", self._signer is not None
        self.capabilities = capabilities_of(is_live=is_live, is_signing=is_signing)
        self._clock = clock
        self._connections = connections or GatewayConnections(account.base_url, clock, timeout_s=account.timeout_s)
        self._tokens = Tokens(account, self._connections.effects, self.governor, clock, shelf=shelf)

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Sends an effect once, or a second time where the first provably did nothing, and says what it came to."""
        began_s = self._clock.boot_s()
        try:
            outcome = await self._effect(call, expected, sending)
        finally:
            # A place that nobody has ended by now may have been used, or be in use.
            sending.place.leave()
        elapsed_ms = round((self._clock.boot_s() - began_s) * 1_000)
        evidence = msgspec.structs.replace(outcome.evidence, elapsed_ms=elapsed_ms)
        return msgspec.structs.replace(outcome, evidence=evidence)

    async def observe(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,
        priority: Priority = Priority.SETTLE,
    ) -> Sight:
        """Looks at payments, to prove something by them; waits for a place until then (by ``clock.boot_s``)."""
        reading = await self.read(call, priority=priority, until_s=until_s)
        return sight_of(call, reading, self.timezone)

    async def read(self, call: Read, *, priority: Priority = Priority.READ, until_s: float | None = None) -> Reading:
        """Makes a read, and once more where the token had ended or the connection was lost.

        Waits for a place in the budget until then (by ``clock.boot_s``), without a moment for the account's usual time.
        """
        turn = _Turn(priority=priority, until_s=until_s)
        try:
            request = build(call)
        except UnicodeEncodeError:
            return reads.bad_reply(Evidence(cause=Cause.NOT_UTF8))
        first = await self._read(call, request, turn)
        if isinstance(first, Reading):
            return first
        if isinstance(first, Loss) and not self.governor.may_repeat():
            return reads.lost(first.cause, is_sent=first.is_sent)
        second = await self._read(call, request, turn)
        if isinstance(second, Loss):
            return reads.lost(second.cause, is_sent=second.is_sent)
        return reads.turned_away(TOKEN_REFUSED, None) if isinstance(second, InvalidToken) else second

    def payments_in(self, raw_data: bytes) -> tuple[Payment, ...] | None:
        """Reads a list of payment records; None where it is none, or one of them is not whole."""
        try:
            return payments_in(raw_data, self.timezone)
        except WrongShape:
            return None

    def subscriptions_in(self, raw_data: bytes, *, seen_at_ms: int, order_id: str | None = None) -> tuple[Fact, ...]:
        """Reads a record or a list of records of subscriptions; with ``order_id`` those of one order alone."""
        of_order = raw_data if order_id is None else records_of(order_id, raw_data)
        return facts_in(of_order, self.timezone, seen_at_ms=seen_at_ms)

    def without(self, raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
        """Leaves payments out of a list of records; None where none is left."""
        return records_without(raw_data, payment_ids)

    async def checkout(self, page: HostedPage) -> CheckoutForm | NoCheckout:
        """Gives the signed form; nothing is asked of the gateway for it."""
        if self._signer is None:
            return NOT_CONFIGURED
        return build_form(self._signer, page.asked, page.returns, today=page.today)

    def notification(self, headers: Headers, body: bytes) -> Received | UnreadableNotification:  # noqa: ARG002, the body is signed
        """Reads a form; all that is signed, and the signature, stand in the body."""
        return received(body, self._signer)

    async def check(self) -> list[CheckFinding]:
        """Tries the account out, without changing anything, and tells in plain words what works and what doesn't."""
        token = await self._tokens.current(self._clock.boot_s() + self.queue_s + self.timeout_s)
        findings = [finding_of_token(token if isinstance(token, TurnedAway) else None)]
        if isinstance(token, Token):
            findings.append(finding_of_reading(await self.read(PaymentsOfOrder(order_id=CHECKED_ORDER))))
        return findings

    async def close(self) -> None:
        """Closes all connections; calls under way are lost."""
        await self._tokens.close()
        await self._connections.close()
        await self.governor.close()

    async def _effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        try:
            request = build(call, notify_url=sending.notify_url)
        except UnicodeEncodeError:
            sending.place.release_unused()
            return effects.not_sent(Code.INTERNAL, Cause.NOT_UTF8)
        ready = await self._ready(sending)
        if isinstance(ready, TurnedAway):
            return msgspec.structs.replace(effects.turned_away(ready, None), verdict=Verdict.NOT_SENT)
        token, place = ready
        if not self.governor.may_go_out(place):
            place.release_unused()
            return effects.not_sent(Code.UNAVAILABLE, Cause.GATEWAY_FAILING)
        work = _Work(call=call, expected=expected, request=request, send_by_s=sending.send_by_s)
        answer = await self._send_effect(work, token, place)
        if isinstance(answer, Outcome):
            return answer
        self._tokens.drop(token)
        return await self._send_again(work, sending, answer.evidence)

    async def _ready(self, sending: Sending) -> tuple[Token, Permit] | TurnedAway:
        """Gives a token and a place to send on; where there is not both in time, no place is held.

        Nobody waits for a token on a place: getting one takes a place too, and a burst that held them all would wait
        for itself.
        """
        token = self._tokens.at_once()
        if token is not None:
            return token, sending.place
        sending.place.release_unused()
        waited_for = await self._tokens.current(sending.send_by_s)
        if isinstance(waited_for, TurnedAway):
            return waited_for
        place = await take_place(self.governor, sending.send_by_s, sending.place.priority)
        return place if isinstance(place, TurnedAway) else (waited_for, place)

    async def _send_again(self, work: "_Work", sending: Sending, evidence: Evidence) -> Outcome:
        """Sends once more what the gateway turned away for its token alone: with a new token, journaled, in time."""
        token = await self._tokens.current(work.send_by_s)
        if isinstance(token, TurnedAway):
            return effects.turned_away(token, evidence.http_status)
        place = await take_place(self.governor, work.send_by_s, sending.place.priority)
        if isinstance(place, TurnedAway):
            return effects.turned_away(place, evidence.http_status)
        if not await _is_journaled(sending, evidence, place):
            return effects.turned_away(NOT_RESENT, evidence.http_status)
        answer = await self._send_effect(work, token, place)
        if isinstance(answer, InvalidToken):
            self._tokens.drop(token)
            return effects.turned_away(TOKEN_REFUSED, answer.evidence.http_status)
        if answer.verdict is Verdict.NOT_SENT:
            # The second never left, but the first did.
            return msgspec.structs.replace(answer, verdict=Verdict.NOT_EXECUTED)
        return answer

    async def _send_effect(self, work: "_Work", token: Token, place: Permit) -> Outcome | InvalidToken:
        with used(place):
            send_by_s = min(work.send_by_s, place.send_by_s)
            reply = await self._connections.effects.exchange(work.request, token.headers, send_by_s=send_by_s)
            answer = _outcome_of(work, token, reply)
            end_place(place, reply, answer.evidence.cause)
        return answer

    async def _read(self, call: Read, request: WireRequest, turn: "_Turn") -> Reading | InvalidToken | Loss:
        """Makes a read once; what may be made again comes back as it is."""
        shut = self.governor.refusal(turn.priority)
        if shut is not None:
            return reads.turned_away(failing(shut), None)
        # A token that has to be fetched takes a place and a call of its own.
        token = await self._tokens.current(self._clock.boot_s() + self.queue_s + self.timeout_s)
        if isinstance(token, TurnedAway):
            return reads.turned_away(token, None)
        until_s = self._clock.boot_s() + self.queue_s if turn.until_s is None else turn.until_s
        place = await take_place(self.governor, until_s, turn.priority)
        if isinstance(place, TurnedAway):
            return reads.turned_away(place, None)
        with used(place):
            reply = await self._connections.reads.exchange(request, token.headers, send_by_s=place.send_by_s)
            answer = _reading_of(call, token, reply)
            end_place(place, reply, answer.cause if isinstance(answer, Loss) else answer.evidence.cause)
        if isinstance(answer, InvalidToken):
            self._tokens.drop(token)
        return answer


def capabilities_of(*, is_live: bool, is_signing: bool) -> Capabilities:
    """Tells what PayHere can do. It keeps no idempotency keys, and of a hold nothing shows before it is captured."""
    return Capabilities(
        does_once=frozenset({Kind.CAPTURE, Kind.CANCEL}),
        finds_orders=True,
        shows_refunds=True,
        shows_installments=True,
        unknown_to_plans=frozenset() if is_live else LIVE_ONLY,
        unset_for_checkouts=() if is_signing else ("MERCHANT_ID", "MERCHANT_SECRET"),
    )


class _Turn(msgspec.Struct, frozen=True, kw_only=True):
    """How a read waits for its place."""

    priority: Priority
    until_s: float | None


class _Work(msgspec.Struct, frozen=True, kw_only=True):
    """One effect on its way, first and second sending alike."""

    call: Effect
    expected: ExpectedReply
    request: WireRequest
    send_by_s: float


_CODES_OF_LOSS: Final = {LossCause.TOO_LATE: Code.UNAVAILABLE, LossCause.CLOSED: Code.UNAVAILABLE}
"""Where nothing was sent for a reason of our own."""


def _outcome_of(work: _Work, token: Token, reply: Reply | Loss) -> Outcome | InvalidToken:
    if isinstance(reply, Reply):
        return effects.classify(work.call, work.expected, reply.http_status, reply.body, token.text)
    if reply.is_sent:
        return effects.unknown(Evidence(cause=reply.cause))
    return effects.not_sent(_CODES_OF_LOSS.get(reply.cause, Code.GATEWAY_UNREACHABLE), reply.cause)


def _reading_of(call: Read, token: Token, reply: Reply | Loss) -> Reading | InvalidToken | Loss:
    """Reads a reply; a loss that may be made good by another read stays one."""
    if isinstance(reply, Reply):
        return reads.classify_read(call, reply.http_status, reply.body, token.text)
    return reply if reply.cause is LossCause.CONNECTION_LOST else reads.lost(reply.cause, is_sent=reply.is_sent)


async def _is_journaled(sending: Sending, evidence: Evidence, place: Permit) -> bool:
    """Journals the second sending; where that fails in any way, the place goes back and it is not sent."""
    is_journaled = False
    try:
        is_journaled = await sending.resent(evidence) is True
    except Exception:  # noqa: BLE001, whatever kept it from being journaled, it must not be sent then
        is_journaled = False
    finally:
        if not is_journaled:
            place.release_unused()
    return is_journaled
