"""Shows an act to be confirmed, and begins it once: directly, or after a second person has confirmed it too.

Rules:

1. A form names what its page showed: the state of the thing, and the newest line about it. Where either is another one
   by now, nothing happens, and whoever sent the form is told what changed.
2. The line in the history is stored with the step that lets the act begin, before anything else is done.
3. Where a second person is needed, nobody confirms what they proposed.
4. Some acts need that the operator has shown the second factor shortly before; of refunds those that aren't small. What
   was refunded without it since it was shown last, in whichever session, is added up where the next one is stored. So
   many small ones are no large one.
"""

import asyncio
from typing import Final

import msgspec

from payrelay.core.operators.confirmations import (
    Confirmation,
    ConfirmationState,
    SmallRefunds,
    is_over,
    is_stuck,
    next_of_confirmation,
)
from payrelay.core.operators.roles import HAVE_OWN_LINE, Act
from payrelay.errors import Code, Refusal, StillRunning, StoreError
from payrelay.flows.operators.acting import ActResult, ActTarget, ConfirmedAct
from payrelay.flows.operators.acts.act_registry import ActRegistry
from payrelay.flows.operators.acts.fields import client_of, details_of, fields_of
from payrelay.flows.operators.acts.results import operation_of
from payrelay.flows.operators.acts.stale import StalePageError, line_of, require_fresh
from payrelay.flows.operators.acts.targets import target_of
from payrelay.flows.operators.parts import Actor, OperatorParts, acting
from payrelay.flows.operators.refunds.shown import (
    INSISTS,
    amount_shown,
    call_of,
    insisting,
    request_for,
    require_refundable,
    with_money,
)
from payrelay.flows.relay import Relay

WAIT_S: Final = 8.0
"""How long the page of a result is held back for the outcome; then it is shown with what is known."""
GONE: Final = "this was shown too long ago; begin again from the page of what it is about"
OWN: Final = "you proposed this; a second person has to confirm it"
SHOWN_TO_ANOTHER: Final = "this was shown to somebody else; begin from the page of what it is about"


class ConfirmedBy(msgspec.Struct, frozen=True):
    """Who confirms, in which request, and why."""

    actor: Actor
    request_id: str
    reason: str

    @property
    def id(self) -> str:
        """The operator's id."""
        return operator_id_of(self.actor)


def operator_id_of(actor: Actor) -> str:
    """Gives the id of the operator who acts; empty for a command on the machine."""
    return "" if actor.operator is None else actor.operator.id


async def prepare(
    parts: OperatorParts, relay: Relay, actor: Actor, act: Act, given: dict[str, str], *, request_id: str
) -> Confirmation:
    """Stores what is about to be confirmed, and returns it; nothing is done yet.

    ``given`` are the fields of the form, with ``noun``, ``id`` and ``seen``. Raises Refusal: forbidden; not_found;
    conflict where this can't be done to the thing now, such as a refund of more than is left; invalid_request for a
    wrong field. With ``insist`` among the fields the gateway is asked first what its record shows, and the refund can
    be confirmed all the same; unavailable where the gateway doesn't answer. Raises StalePageError where the page that
    had the form shows what is no more; StoreError.
    """
    actor.require(act)
    target = await existing_target(relay, actor, given["noun"], given["id"])
    seen = given.get("seen", "")
    await require_fresh(parts, relay, target, seen)
    if act not in target.acts:
        raise Refusal(Code.CONFLICT, f"this can't be done now: it is {target.state.partition(':')[0]}")
    fields = await fields_of(relay, act, target, given)
    principal = target.principal or client_of(target, given)
    amount_minor = target.amount_minor
    if act is Act.REFUND:
        request = request_for(relay, target.account, principal, actor.name, request_id)
        if given.get("insist"):
            fields = await insisting(parts, relay, actor, target, fields=fields, request=request)
            target = await existing_target(relay, actor, given["noun"], given["id"])
            seen = f"{target.seen}.{line_of(seen)}"
        else:
            require_refundable(target, call_of(target, fields), request)
        amount_minor = amount_shown(target, is_insisting=INSISTS in fields)
    now_ms = parts.clock.now_ms()
    amount = fields.get("amount_minor")
    confirmation = Confirmation(
        id=relay.new_id("cnf", now_ms),
        act_name=act,
        subject=target.subject,
        account=target.account,
        principal=principal,
        order_id=target.order_id,
        amount_minor=amount_minor if amount is None else int(amount),
        currency=target.currency,
        fields=msgspec.json.encode(fields).decode(),
        seen=seen,
        state=ConfirmationState.SHOWN,
        made_by=operator_id_of(actor),
        proposed_by=None,
        confirmed_by=None,
        reason="",
        operation_id=None,
        said="",
        version=1,
        act=0,
        made_at_ms=now_ms,
        changed_at_ms=now_ms,
    )
    await parts.confirmations.add(confirmation)
    return confirmation


async def confirm(parts: OperatorParts, relay: Relay, confirmation_id: str, by: ConfirmedBy) -> None:
    """Confirms what was shown: proposes it where a second person is needed, and else does it.

    May be repeated: what has begun is not begun again. Raises Refusal: forbidden; not_found; conflict where it can't be
    confirmed any more. Raises NotRecent, StalePageError, StoreError. What came of it is read by ``results``.
    """
    confirmation = await own_confirmation(parts, by.actor, confirmation_id)
    state, now_ms = confirmation.state, parts.clock.now_ms()
    is_left = is_stuck(confirmation, now_ms)
    if state not in {ConfirmationState.SHOWN, ConfirmationState.PROPOSED} and not is_left:
        return
    target = await existing_target(relay, by.actor, *confirmation.subject.split("/", 1))
    if not is_left:
        _require_may_confirm(confirmation, by, now_ms)
    small = _small_refunds(parts, confirmation, by.actor, now_ms)
    if small is None:
        by.actor.require_recent(confirmation.act_name, now_ms)
    try:
        stored = await _confirmed(parts, relay, confirmation, target, by=by, small=small)
    except StalePageError:
        newest = await parts.confirmations.get(confirmation_id)
        if newest is None or newest.version == confirmation.version:
            raise
        return  # another tab was quicker, and its own line is what is new; the page tells what came of it
    if stored.state is ConfirmationState.BEGUN:
        operator = await _names(parts, stored, by)
        act = ConfirmedAct(confirmation=stored, target=target, operator=operator, by=by.actor, request_id=by.request_id)
        # A task of its own: a browser that goes away ends only this wait.
        ended, _ = await asyncio.wait({relay.background.start(_done(parts, relay, act))}, timeout=WAIT_S)
        for task in ended:
            task.result()  # raises what nobody expected


async def withdraw(parts: OperatorParts, confirmation_id: str, by: ConfirmedBy) -> None:
    """Withdraws what was proposed; whoever may do the act may withdraw it too. Does nothing where it isn't proposed.

    Raises Refusal: forbidden, not_found; StoreError.
    """
    confirmation = await own_confirmation(parts, by.actor, confirmation_id)
    if confirmation.state is ConfirmationState.PROPOSED:
        members = {"state": ConfirmationState.WITHDRAWN, "said": "It was withdrawn; nothing was done."}
        await _stored(parts, confirmation, by, Act.WITHDRAW, members)


async def own_confirmation(parts: OperatorParts, actor: Actor, confirmation_id: str) -> Confirmation:
    """Reads a confirmation of an act that the role allows. Raises Refusal (forbidden, not_found), StoreError."""
    confirmation = await parts.confirmations.get(confirmation_id)
    if confirmation is None:
        raise Refusal(Code.NOT_FOUND, "there is nothing to confirm here any more")
    actor.require(confirmation.act_name)
    return confirmation


async def existing_target(relay: Relay, actor: Actor, noun: str, id_: str) -> ActTarget:
    """Reads something that can be acted on, with the facts that the actor sees.

    Raises Refusal (forbidden, not_found), StoreError.
    """
    actor.require(relay.find(ActRegistry).seen_by.get(noun, Act.LOOK))
    target = await target_of(relay, noun, id_)
    if target is None:
        raise Refusal(Code.NOT_FOUND, "there is nothing with this id")
    return await with_money(relay, target.shown_to(actor))


def _require_may_confirm(confirmation: Confirmation, by: ConfirmedBy, now_ms: int) -> None:
    if is_over(confirmation, now_ms):
        raise Refusal(Code.CONFLICT, GONE)
    if confirmation.state is ConfirmationState.PROPOSED and confirmation.proposed_by == by.id:
        raise Refusal(Code.FORBIDDEN, OWN)
    if confirmation.state is ConfirmationState.SHOWN and confirmation.made_by != by.id:
        raise Refusal(Code.FORBIDDEN, SHOWN_TO_ANOTHER)


def _small_refunds(parts: OperatorParts, confirmation: Confirmation, actor: Actor, now_ms: int) -> SmallRefunds | None:
    """Gives what a refund counts in that is small enough by itself; None where that doesn't matter or doesn't help."""
    currency, amount_minor = confirmation.currency or "", confirmation.amount_minor
    limit_minor = parts.small_refunds.get(currency)
    if confirmation.act_name is not Act.REFUND or actor.is_recent(now_ms) or limit_minor is None:
        return None
    if amount_minor is None or amount_minor > limit_minor:
        return None
    return SmallRefunds(currency, limit_minor)


async def _confirmed(
    parts: OperatorParts,
    relay: Relay,
    confirmation: Confirmation,
    target: ActTarget,
    *,
    by: ConfirmedBy,
    small: SmallRefunds | None,
) -> Confirmation:
    """Stores the step that a confirmation leads to, with its line.

    Raises NotRecent, and StalePageError where something is new.
    """
    if confirmation.state is ConfirmationState.SHOWN and confirmation.act_name in parts.second_person:
        line = Act.PROPOSE
        members = {"state": ConfirmationState.PROPOSED, "proposed_by": by.id, "reason": by.reason}
    else:
        line = Act.CONFIRM if confirmation.act_name in HAVE_OWN_LINE else confirmation.act_name
        reason = confirmation.reason or by.reason
        members = {"state": ConfirmationState.BEGUN, "confirmed_by": by.id, "reason": reason}
    if confirmation.state is not ConfirmationState.BEGUN:
        await require_fresh(parts, relay, target, confirmation.seen, own_line=confirmation.act)
    stored = await _stored(parts, confirmation, by, line, members, small=small)
    if stored is None:
        await require_fresh(parts, relay, target, confirmation.seen, own_line=confirmation.act)
        raise StalePageError(target, [])
    return stored


async def _stored(
    parts: OperatorParts,
    confirmation: Confirmation,
    by: ConfirmedBy,
    line: Act,
    members: dict[str, str],
    *,
    small: SmallRefunds | None = None,
) -> Confirmation | None:
    """Stores the next version with its line; None where another version or another line came first."""
    now_ms = parts.clock.now_ms()
    details = details_of(confirmation)
    new = by.actor.did(line, confirmation.subject, at_ms=now_ms, reason=by.reason, details=details)
    is_seen = line is not Act.WITHDRAW and confirmation.state is not ConfirmationState.BEGUN
    seen = max(line_of(confirmation.seen), confirmation.act) if is_seen else None
    changed = next_of_confirmation(confirmation, now_ms, **members)
    return await parts.confirmations.change(changed, new, seen=seen, small=small)


async def _names(parts: OperatorParts, confirmation: Confirmation, by: ConfirmedBy) -> str:
    """Names who did it, for the journal: the one who confirmed it, and the one who had proposed it."""
    if confirmation.proposed_by is None:
        return by.actor.name
    proposer = await parts.operators.get(confirmation.proposed_by)
    name = confirmation.proposed_by if proposer is None else acting(proposer).name
    return f"{name}, confirmed by {by.actor.name}"


async def _done(parts: OperatorParts, relay: Relay, act: ConfirmedAct) -> None:
    """Does it, and stores what came of it; where that can't be stored, the page reads it from the operation."""
    confirmation = act.confirmation
    try:
        state, result = await _tried(relay, act)
        if state is not None:
            ended = next_of_confirmation(
                confirmation, parts.clock.now_ms(), state=state, said=result.said, operation_id=result.operation_id
            )
            await parts.confirmations.end(ended)
    except StoreError as error:
        relay.log.error("act_not_stored", confirmation=confirmation.id, error=type(error).__name__)


async def _tried(relay: Relay, act: ConfirmedAct) -> tuple[ConfirmationState | None, ActResult]:
    nothing = ActResult(said="")
    try:
        result = await relay.find(ActRegistry).carried_out[act.confirmation.act_name](relay, act)
    except StillRunning:
        return None, nothing
    except Refusal as refusal:
        operation = await operation_of(relay, act.confirmation)
        if operation is not None:  # an earlier try of this very act is stored, and says what came of it
            return ConfirmationState.DONE, ActResult(said="", operation_id=operation.id)
        return ConfirmationState.REFUSED, ActResult(said=f"{refusal.msg[:1].upper()}{refusal.msg[1:]}.")
    return (None if result == nothing else ConfirmationState.DONE), result
