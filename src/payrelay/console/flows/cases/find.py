"""Finds orders and payments for somebody at the console: by what a client or a customer names, or by a filter.

Rules:

1. A text finds what has exactly that id. Nothing is guessed, and no list is passed over for it.
2. Nobody finds by what they don't see (``core.console.roles``).
3. A filter without an index looks through a limited number of rows, and says how far it came.
4. What was not looked at is said. The digits of cards lie sealed: the cards of the newest stored customers are opened,
   and the others are not.
"""

from typing import Final

from payrelay.console.flows.cases import hits
from payrelay.console.flows.cases.find_by_text import find_by_text
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.rules.finding import Found, Hit, Search
from payrelay.console.store.searches import Began, Looked, Narrowing, time_of_id
from payrelay.core.operators.roles import Act, Field
from payrelay.core.payments.operation import Kind
from payrelay.errors import Refusal
from payrelay.flows.operators.parts import Actor

PAGE: Final = 50
"""Hits on one page of a list."""
_NO_CUSTOMERS: Final = (
    "Your role finds nothing by idempotency keys, customers' references and cards, because these may name a customer."
)


async def find(parts: CaseParts, actor: Actor, search: Search) -> Found:
    """Finds what fits, newest first. Raises Refusal (forbidden); StoreUnavailable, also where it takes too long."""
    actor.require(Act.LOOK)
    if search.text:
        return await _by_text(parts, actor, search)
    return await _by_filter(parts, search)


async def _by_text(parts: CaseParts, actor: Actor, search: Search) -> Found:
    found = await find_by_text(parts, search.text, sees=actor.sees, account=search.account)
    fitting = sorted((hit for hit in found.hits if search.fits(hit)), key=lambda hit: hit.at_ms, reverse=True)
    notes = list(found.notes)
    hidden = len(found.hits) - len(fitting)
    if hidden:
        notes.append(f"{hidden} more {'has' if hidden == 1 else 'have'} this id, and the filter leaves out.")
    if not actor.sees(Field.CUSTOMER):
        notes.append(_NO_CUSTOMERS)
    if not found.hits:
        notes += await _lost(parts)
    return Found(hits=tuple(fitting), notes=tuple(notes))


async def _lost(parts: CaseParts) -> list[str]:
    """Says, where commits of the database may be lost, that what isn't found may be among them."""
    try:
        await parts.relay.database.lost_commits.require_known(None, "order")
    except Refusal as refusal:
        return [f"{refusal.msg[:1].upper()}{refusal.msg[1:]}."]
    return []


async def _by_filter(parts: CaseParts, search: Search) -> Found:
    span = Began(since_ms=search.since_ms, until_ms=search.until_ms, before=search.before)
    if search.is_of_checkouts:
        narrowing = Narrowing(account=search.account, state=search.plain_state, amount_minor=search.amount_minor)
        looked = await parts.searches.look_through_checkouts(narrowing, span, limit=PAGE + 1)
    else:
        narrowing = Narrowing(
            account=search.account,
            state=search.plain_state,
            kind=None if search.kind is None else Kind(search.kind).stored,
            amount_minor=search.amount_minor,
        )
        looked = await parts.searches.look_through_operations(narrowing, span, limit=PAGE + 1)
    return _page(looked)


def _page(looked: Looked) -> Found:
    found: list[Hit] = [hits.of_operation(each) for each in looked.operations]
    found += [hits.of_checkout(each) for each in looked.checkouts]
    if looked.rows > PAGE:
        return Found(hits=tuple(found[:PAGE]), older=found[PAGE - 1].id if len(found) >= PAGE else looked.last_id)
    if looked.edge_id is None:
        return Found(hits=tuple(found))
    return Found(hits=tuple(found), older=looked.edge_id, looked_back_to_ms=time_of_id(looked.edge_id))
