"""Closes the page of a checkout, for a client or an operator: the order is free for another one at once.

Rules:

1. Nothing takes back a form that is out. So closing promises no more than that the service sends nobody on any more,
   and says whether the customer may still pay. A payment completes the checkout however late it is.
2. A customer may have paid a moment ago, and would be asked to pay the next page too. So the gateway is asked before
   an open page is closed, as at the end of its time, where a form or an address is out and the gateway's records would
   show it. That takes one call, in a slot that the order gets for the end of each checkout.
3. The look doesn't hold the answer for longer than INQUIRY_WAIT_S, and where it fails the page is closed all the same.
   Else a shop could sell nothing while the gateway is down, although an open page protects no better: who has the form
   can pay either way.
4. A page whose hold has lapsed is closed by that, which shows here where nobody asked for its order since.
5. A page from before a loss of commits isn't closed before the gateway can show what was paid within it: it doesn't end
   by its time any earlier.
"""

from typing import Final

from payrelay.core.answers import Answer, found
from payrelay.core.checkouts.checkout import PAID_OR_HELD, Checkout
from payrelay.core.operators.operator import NewAct
from payrelay.core.operators.roles import Act
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.doubted_payments import doubted_since, is_shown_by_now
from payrelay.flows.checkouts.finish_checkout import close, end_hold
from payrelay.flows.checkouts.show_checkout import DOUBT_SENTENCE, CheckoutView, own_checkout, view, was_given_out
from payrelay.flows.relay import Relay, Request

DOUBT_RETRY_AFTER_S: Final = 30


async def close_checkout(relay: Relay, request: Request, checkout_id: str) -> Answer:
    """Closes a checkout of the caller's, and answers with it; a repeat gets the same answer.

    Raises Refusal: not_found for a checkout that the caller may not see, and what ``close_page`` raises; StoreError.
    """
    return found(await close_page(relay, await own_checkout(relay, request, checkout_id)))


async def close_page(relay: Relay, checkout: Checkout) -> CheckoutView:
    """Closes the page of a checkout, and returns the checkout as it is stored then; one that has ended stays as it is.

    Raises Refusal: conflict where it was paid, approved or held, also where the gateway shows that only now;
    unavailable where it may have been paid in lost commits, or the database is behind. Raises StoreError.
    """
    if checkout.is_open:
        await relay.database.lost_commits.require_effects_allowed()
        loss = await doubted_since(relay, checkout)
        if loss is not None and not is_shown_by_now(relay, checkout, loss):
            raise Refusal(Code.UNAVAILABLE, DOUBT_SENTENCE, retry_after_s=DOUBT_RETRY_AFTER_S)
        checkout = await close(relay, checkout, looks_first=await was_given_out(relay, checkout))
    checkout = await end_hold(relay, checkout)
    if checkout.state in PAID_OR_HELD:
        msg = f"the checkout {checkout.id} is {checkout.state} already: it can't be closed"
        raise Refusal(Code.CONFLICT, msg, checkout_id=checkout.id)
    return await view(relay, checkout)


async def close_by_command(relay: Relay, checkout: Checkout, *, by: str, reason: str) -> CheckoutView:
    """Closes the page of a checkout as ``close_page`` does, for the user who runs a command.

    Where that ended it, the history of what operators did has a line of it then.
    """
    closed = await close_page(relay, checkout)
    if checkout.state is not closed.state:
        subject, now_ms = f"checkout/{checkout.id}", relay.clock.now_ms()
        did = NewAct(at_ms=now_ms, operator_id="", name=by, act=Act.CLOSE_CHECKOUT, subject=subject, reason=reason)
        acts = relay.acts
        await acts.written(lambda: acts.appended(did))
    return closed
