"""Sends effects to PayHere: once, or a second time where only the access token of the first sending was rejected.

Each sending is journaled before it is made, also the second one.
"""

from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.calls import Effect
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.errors import Code
from payrelay.gateways.gateway import ExpectedReply, Sending
from payrelay.gateways.http.exchange import Loss, LossCause, Network, Reply
from payrelay.gateways.pacing.rate_limiter import Permit, RateLimiter
from payrelay.gateways.payhere.permits import end_permit, take_permit, used
from payrelay.gateways.payhere.tokens import TOKEN_REFUSED, Token, Tokens
from payrelay.gateways.payhere.wire import effect_replies as effects
from payrelay.gateways.payhere.wire.reply_shapes import Cause, InvalidToken, RejectedCall
from payrelay.gateways.payhere.wire.requests import WireRequest, build

NOT_RETRIED: Final = RejectedCall(
    code=Code.UNAVAILABLE,
    cause=Cause.INVALID_TOKEN,
    msg="the gateway rejected the access token, and the service could not resend the request; nothing was executed",
)


class EffectSender:
    """Sends the effects of one account. ``send`` raises nothing, except that a cancelled caller gets CancelledError."""

    def __init__(self, connections: Network, tokens: Tokens, rate_limiter: RateLimiter, clock: Clock) -> None:
        self._connections = connections
        self._tokens = tokens
        self._rate_limiter = rate_limiter
        self._clock = clock

    async def send(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Sends an effect once, or a second time where the first sending provably did nothing; gives its outcome."""
        began_s = self._clock.boot_s()
        try:
            outcome = await self._effect(call, expected, sending)
        finally:
            # A permit that is still open here may have been used, or be in use.
            sending.permit.leave()
        elapsed_ms = round((self._clock.boot_s() - began_s) * 1_000)
        evidence = msgspec.structs.replace(outcome.evidence, elapsed_ms=elapsed_ms)
        return msgspec.structs.replace(outcome, evidence=evidence)

    async def _effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        try:
            request = build(call, notify_url=sending.notify_url)
        except UnicodeEncodeError:
            sending.permit.release_unused()
            return effects.not_sent(Code.INTERNAL, Cause.REQUEST_NOT_UTF8)
        ready = await self._ready(sending)
        if isinstance(ready, RejectedCall):
            return msgspec.structs.replace(effects.rejected(ready, None), kind=OutcomeKind.NOT_SENT)
        token, permit = ready
        if not self._rate_limiter.may_go_out(permit):
            permit.release_unused()
            return effects.not_sent(Code.UNAVAILABLE, Cause.GATEWAY_FAILING)
        pending = _PendingEffect(call=call, expected=expected, request=request, send_by_s=sending.send_by_s)
        answer = await self._send_effect(pending, token, permit)
        if isinstance(answer, Outcome):
            return answer
        self._tokens.drop(token)
        return await self._send_again(pending, sending, answer.evidence)

    async def _ready(self, sending: Sending) -> tuple[Token, Permit] | RejectedCall:
        """Gives a token and a permit to send with. Where one of them doesn't come in time, no permit is held.

        No caller waits for a token while it holds a permit. A token takes a permit too, and a burst of callers that
        held them all would wait for itself.
        """
        ready = self._tokens.at_once()
        if ready is not None:
            return ready, sending.permit
        sending.permit.release_unused()
        token = await self._tokens.current(sending.send_by_s)
        if isinstance(token, RejectedCall):
            return token
        permit = await take_permit(
            self._rate_limiter, sending.send_by_s, sending.permit.priority, sending.permit.requester
        )
        return permit if isinstance(permit, RejectedCall) else (token, permit)

    async def _send_again(self, pending: "_PendingEffect", sending: Sending, evidence: Evidence) -> Outcome:
        """Sends an effect again that the gateway rejected for its token alone: with a new token, journaled, in time."""
        token = await self._tokens.current(pending.send_by_s)
        if isinstance(token, RejectedCall):
            return effects.rejected(token, evidence.http_status)
        permit = await take_permit(
            self._rate_limiter, pending.send_by_s, sending.permit.priority, sending.permit.requester
        )
        if isinstance(permit, RejectedCall):
            return effects.rejected(permit, evidence.http_status)
        if not await _is_journaled(sending, evidence, permit):
            return effects.rejected(NOT_RETRIED, evidence.http_status)
        answer = await self._send_effect(pending, token, permit)
        if isinstance(answer, InvalidToken):
            self._tokens.drop(token)
            return effects.rejected(TOKEN_REFUSED, answer.evidence.http_status)
        if answer.kind is OutcomeKind.NOT_SENT:
            # The second sending never left, but the first one did.
            return msgspec.structs.replace(answer, kind=OutcomeKind.NOT_EXECUTED)
        return answer

    async def _send_effect(self, pending: "_PendingEffect", token: Token, permit: Permit) -> Outcome | InvalidToken:
        with used(permit):
            send_by_s = min(pending.send_by_s, permit.send_by_s)
            reply = await self._connections.effects.exchange(pending.request, token.headers, send_by_s=send_by_s)
            answer = _outcome_of(pending, token, reply)
            end_permit(permit, reply, answer.evidence.cause)
        return answer


class _PendingEffect(msgspec.Struct, frozen=True, kw_only=True):
    """One effect that is being sent; the first and the second sending share it."""

    call: Effect
    expected: ExpectedReply
    request: WireRequest
    send_by_s: float


_CODES_OF_LOSS: Final = {LossCause.TOO_LATE: Code.UNAVAILABLE, LossCause.CLOSED: Code.UNAVAILABLE}
"""For requests that were not sent for a reason of our own."""


def _outcome_of(pending: _PendingEffect, token: Token, reply: Reply | Loss) -> Outcome | InvalidToken:
    if isinstance(reply, Reply):
        return effects.classify(pending.call, pending.expected, reply.http_status, reply.body, token.text)
    if reply.is_sent:
        return effects.unknown(Evidence(cause=reply.cause))
    return effects.not_sent(_CODES_OF_LOSS.get(reply.cause, Code.GATEWAY_UNREACHABLE), reply.cause)


async def _is_journaled(sending: Sending, evidence: Evidence, permit: Permit) -> bool:
    """Journals the second sending. Where that fails in any way, the permit goes back, and nothing is sent."""
    is_journaled = False
    try:
        is_journaled = await sending.journal_resend(evidence) is True
    except Exception:  # noqa: BLE001, whatever failed, an unjournaled effect must not be sent
        is_journaled = False
    finally:
        if not is_journaled:
            permit.release_unused()
    return is_journaled
