"""Acting: a form leads to a confirmation, which has an address of its own; the result is at the same address."""

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.pages.target import reason_from, stale_page, target_page
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import redirect
from payrelay.core.operators.act_texts import TITLES_OF_DECISIONS, text_of
from payrelay.core.operators.confirmations import Confirmation, ConfirmationState, is_over
from payrelay.core.operators.roles import HAVE_OWN_LINE, Act, may
from payrelay.errors import MEANINGS, Code, Refusal
from payrelay.flows.operators.acts.confirm import (
    ConfirmedBy,
    confirm,
    existing_target,
    operator_id_of,
    own_confirmation,
    prepare,
    withdraw,
)
from payrelay.flows.operators.acts.results import ending_now
from payrelay.flows.operators.acts.stale import StalePageError
from payrelay.flows.operators.refunds.shown import INSISTS, RECORD, amount_in_words


async def prepare_act(asked: Asked) -> ConsoleAnswer:
    """Stores what is to be confirmed, and leads to its page."""
    noun, id_ = asked.names
    act = Act(asked.request.path.rpartition(b"/")[2].decode())
    try:
        given = {**asked.form, "noun": noun, "id": id_}
        request_id = asked.request.request_id
        confirmation = await prepare(asked.parts, asked.site.relay, asked.actor, act, given, request_id=request_id)
    except StalePageError as stale:
        return stale_page(asked, stale)
    except Refusal as refusal:
        if refusal.code is Code.NOT_FOUND:
            raise
        target = await existing_target(asked.site.relay, asked.actor, noun, id_)
        may_insist = act is Act.REFUND and refusal.code is not Code.INVALID_REQUEST
        return await target_page(asked, target, refusal, may_insist=may_insist)
    return redirect(f"/console/confirmations/{confirmation.id}")


async def show_confirmation(asked: Asked) -> ConsoleAnswer:
    """Shows what is to be confirmed, or what came of it."""
    return await _page(asked)


async def take_confirmation(asked: Asked) -> ConsoleAnswer:
    """Does what was shown, once, and leads to the result at the same address."""
    try:
        reason = reason_from(asked, "reason", "the reason")
        await confirm(asked.parts, asked.site.relay, asked.names[0], _by(asked, reason))
    except StalePageError as stale:
        return stale_page(asked, stale, kept=asked.form.get("reason", ""))
    except Refusal as refusal:
        if refusal.code is Code.NOT_FOUND:
            raise
        return await _page(asked, refusal)
    return redirect(f"/console/confirmations/{asked.names[0]}")


async def take_back(asked: Asked) -> ConsoleAnswer:
    """Withdraws what was proposed."""
    try:
        reason = reason_from(asked, "reason", "the reason")
        await withdraw(asked.parts, asked.names[0], _by(asked, reason))
    except Refusal as refusal:
        if refusal.code is Code.NOT_FOUND:
            raise
        return await _page(asked, refusal)
    return redirect(f"/console/confirmations/{asked.names[0]}")


def _by(asked: Asked, reason: str) -> ConfirmedBy:
    return ConfirmedBy(asked.actor, asked.request.request_id, reason)


async def _page(asked: Asked, refusal: Refusal | None = None) -> ConsoleAnswer:
    relay = asked.site.relay
    confirmation = await own_confirmation(asked.parts, asked.actor, asked.names[0])
    ending = await ending_now(relay, confirmation)
    over = is_over(confirmation, relay.clock.now_ms())
    noun, _, id_ = confirmation.subject.partition("/")
    text = text_of(confirmation.act_name, noun)
    needs_second = confirmation.act_name in asked.parts.second_person
    proposer = await _proposer(asked, confirmation)
    is_proposal = confirmation.state is ConfirmationState.SHOWN and needs_second
    return asked.page(
        "confirmation.html",
        status=200 if refusal is None else MEANINGS[refusal.code].http_status,
        error=None if refusal is None else f"{refusal.msg[:1].upper()}{refusal.msg[1:]}.",
        confirmation=confirmation,
        text=text,
        ending=ending,
        is_over=over,
        proposer=proposer,
        facts=_facts(confirmation),
        noun=noun,
        id=id_,
        does=("A second person has to confirm it before it is done.",) if is_proposal else (),
        can_confirm=not over and ending is None and _is_for(confirmation, operator_id_of(asked.actor)),
        can_carry_on=ending is not None and ending.can_carry_on,
        button="Carry it on" if ending is not None else "Propose it" if is_proposal else f"{text.name} now",
        given=asked.form,
    )


async def about(asked: Asked) -> list[tuple[str, str]]:
    """Reads what a form confirms, as its page shows it."""
    confirmation = await asked.parts.confirmations.get(asked.names[0])
    if confirmation is None or not may(asked.visited.operator.role, confirmation.act_name):
        return []
    noun, _, id_ = confirmation.subject.partition("/")
    why = [] if confirmation.reason else [("Why", asked.form.get("reason", ""))]
    return [*_facts(confirmation), *why, ("About", f"{noun.capitalize()} {id_}")]


def _facts(confirmation: Confirmation) -> list[tuple[str, str]]:
    """Gives what is confirmed, as pairs of a title and a text."""
    filled = confirmation.filled
    decision = TITLES_OF_DECISIONS.get(filled.get("decision", ""))
    name = text_of(confirmation.act_name, confirmation.subject.partition("/")[0]).name
    figures = filled if confirmation.act_name in HAVE_OWN_LINE else {}
    unknown = "" if figures else "none, or not known"
    facts = [
        ("What", name if decision is None else f"{name}: {decision}"),
        *figures.items(),
        ("Amount", "" if figures else amount_in_words(confirmation) or unknown),
        ("Order", confirmation.order_id or unknown),
        ("Payment", filled.get("payment_id")),
        ("In its way", filled.get(INSISTS)),
        ("The gateway now", filled.get(RECORD)),
        ("Events", filled.get("event_ids")),
        ("The gateway's record says", filled.get("description")),
        ("Account", confirmation.account),
        ("For", confirmation.principal),
        ("Why", confirmation.reason),
    ]
    return [(title, text) for title, text in facts if text]


def _is_for(confirmation: Confirmation, operator_id: str) -> bool:
    """True where this operator is the one who can confirm it."""
    if confirmation.state is ConfirmationState.PROPOSED:
        return confirmation.proposed_by != operator_id
    return confirmation.made_by == operator_id


async def _proposer(asked: Asked, confirmation: Confirmation) -> str:
    if confirmation.proposed_by is None:
        return ""
    proposer = await asked.parts.operators.get(confirmation.proposed_by)
    return confirmation.proposed_by if proposer is None else proposer.name
