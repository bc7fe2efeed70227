"""Reads PayHere's records, and repeats a read once where the token had expired or the connection was lost."""

import msgspec

from payrelay.clock import Clock
from payrelay.core.calls import Read
from payrelay.core.outcomes import Evidence, Reading
from payrelay.gateways.http.exchange import Loss, LossCause, Network, Reply
from payrelay.gateways.pacing.rate_limiter import Priority, RateLimiter, Requester
from payrelay.gateways.payhere.account import Account
from payrelay.gateways.payhere.permits import end_permit, failing, take_permit, used
from payrelay.gateways.payhere.tokens import TOKEN_REFUSED, Token, Tokens
from payrelay.gateways.payhere.wire import read_replies as reads
from payrelay.gateways.payhere.wire.reply_shapes import Cause, InvalidToken, RejectedCall
from payrelay.gateways.payhere.wire.requests import WireRequest, build


class RecordReader:
    """Makes the reads of one account. Raises nothing, except that a cancelled caller gets CancelledError."""

    def __init__(
        self, connections: Network, tokens: Tokens, rate_limiter: RateLimiter, clock: Clock, account: Account
    ) -> None:
        self._connections = connections
        self._tokens = tokens
        self._rate_limiter = rate_limiter
        self._clock = clock
        self._queue_s = account.queue_s
        self._timeout_s = account.timeout_s

    async def read(self, call: Read, turn: "Turn") -> Reading:
        """Makes a read, and repeats it once where the token had expired or the connection was lost."""
        try:
            request = build(call)
        except UnicodeEncodeError:
            return reads.bad_reply(Evidence(cause=Cause.REQUEST_NOT_UTF8))
        first = await self._read(call, request, turn)
        if isinstance(first, Reading):
            return first
        if isinstance(first, Loss) and not self._rate_limiter.may_repeat():
            return reads.lost(first.cause, is_sent=first.is_sent)
        second = await self._read(call, request, turn)
        if isinstance(second, Loss):
            return reads.lost(second.cause, is_sent=second.is_sent)
        return reads.rejected(TOKEN_REFUSED, None) if isinstance(second, InvalidToken) else second

    async def _read(self, call: Read, request: WireRequest, turn: "Turn") -> Reading | InvalidToken | Loss:
        """Makes a read once. A result after which the read may be repeated is given as it is."""
        circuit_open = self._rate_limiter.open_circuit(turn.priority)
        if circuit_open is not None:
            return reads.rejected(failing(circuit_open), None)
        # A token that must be fetched takes a permit and a call of its own.
        token = await self._tokens.current(self._clock.boot_s() + self._queue_s + self._timeout_s)
        if isinstance(token, RejectedCall):
            return reads.rejected(token, None)
        until_s = self._clock.boot_s() + self._queue_s if turn.until_s is None else turn.until_s
        permit = await take_permit(self._rate_limiter, until_s, turn.priority, turn.requester)
        if isinstance(permit, RejectedCall):
            return reads.rejected(permit, None)
        with used(permit):
            reply = await self._connections.reads.exchange(request, token.headers, send_by_s=permit.send_by_s)
            answer = _reading_of(call, token, reply)
            end_permit(permit, reply, answer.cause if isinstance(answer, Loss) else answer.evidence.cause)
        if isinstance(answer, InvalidToken):
            self._tokens.drop(token)
        return answer


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """How a read waits for its permit: for whom, and until when (by ``clock.boot_s``; None for ``queue_s``)."""

    priority: Priority
    until_s: float | None
    requester: Requester


def _reading_of(call: Read, token: Token, reply: Reply | Loss) -> Reading | InvalidToken | Loss:
    """Reads a reply. A loss that a repeat may repair stays a loss."""
    if isinstance(reply, Reply):
        return reads.classify_read(call, reply.http_status, reply.body, token.text)
    return reply if reply.cause is LossCause.CONNECTION_LOST else reads.lost(reply.cause, is_sent=reply.is_sent)
