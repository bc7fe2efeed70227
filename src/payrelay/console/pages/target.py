"""The page of one thing: what is known of it, what can be done about it, and what has changed since it was shown."""

from typing import NamedTuple
from urllib.parse import quote

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.web.asked import Asked
from payrelay.core.operators.act_texts import ACT_TEXTS, text_of
from payrelay.core.operators.roles import Act, may
from payrelay.core.text.operator_text import WordsError, reason_of
from payrelay.errors import MEANINGS, Code, Refusal
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.stale import StalePageError
from payrelay.flows.operators.acts.studies import study_target
from payrelay.flows.operators.acts.targets import that_can_be_acted_on
from payrelay.flows.orders.order_money import PaymentMoney, money_of


class Actions(NamedTuple):
    """The addresses at which the operator can act, with what leads there; and the names of what has no such address."""

    actions: list[tuple[str, str]]
    without: list[str]


async def target_page(
    asked: Asked, target: ActTarget, refusal: Refusal | None = None, *, may_insist: bool = False
) -> ConsoleAnswer:
    """Gives the page of one thing, with what was wrong in the form that was sent.

    With ``may_insist`` the form of a refund asks whether it is to be made all the same.
    """
    role = asked.visited.operator.role
    study = await study_target(asked.parts, asked.site.relay, asked.actor, target)
    return asked.page(
        "act_target.html",
        status=200 if refusal is None else MEANINGS[refusal.code].http_status,
        error=None if refusal is None else f"{refusal.msg[:1].upper()}{refusal.msg[1:]}.",
        target=target,
        study=study,
        may_insist=may_insist,
        takes_payment=any(each.takes_payment for each in study.decisions),
        acts=[act for act in target.acts if act is not Act.DECIDE and may(role, act)],
        allowed=[act for act in (Act.DECIDE, Act.ADD_NOTE, Act.ASSIGN_CASE) if may(role, act)],
        texts={act: text_of(act, target.noun) for act in ACT_TEXTS},
        given=asked.form,
        money=_money(target),
    )


def _money(target: ActTarget) -> PaymentMoney | None:
    """Gives what is known of the money that may be refunded; None where nothing may be."""
    payments = [] if target.money is None else money_of([target.money.facts], [target.money.balance]).payments
    return payments[0] if payments else None


def stale_page(asked: Asked, stale: StalePageError, *, kept: str = "") -> ConsoleAnswer:
    """Says what has changed since the page was shown from which the form came."""
    return asked.page("stale.html", status=409, target=stale.target, changes=stale.changes, kept=kept)


def path_of(target: ActTarget) -> str:
    """Gives the address of the page of one thing."""
    return f"/console/act/{target.noun}/{target.id}"


def reason_from(asked: Asked, field: str, what: str) -> str:
    """Reads a field with a person's own words. Raises Refusal (invalid_request)."""
    try:
        return reason_of(" ".join(asked.form.get(field, "").split()))
    except WordsError as error:
        raise Refusal(Code.INVALID_REQUEST, f"{what} {error}") from None


async def actions_on(asked: Asked, things: list[tuple[str, str, str]]) -> Actions:
    """Gives what the operator can do about things.

    A thing is its noun, its id in an address, and its name in a sentence.
    """
    if not may(asked.visited.operator.role, Act.ADD_NOTE):
        return Actions([], [])
    have_page = await that_can_be_acted_on(asked.site.relay, [(noun, id_) for noun, id_, _ in things])
    shown = list(zip(things, have_page, strict=True))
    actions = [
        (f"/console/act/{noun}/{quote(id_, safe='~')}", f"Act on {name}")
        for (noun, id_, name), has_page in shown
        if has_page
    ]
    return Actions(actions, [name for (_, _, name), has_page in shown if not has_page])
