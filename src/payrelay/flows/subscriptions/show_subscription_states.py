"""Shows the stored states of subscriptions, without a call to the gateway."""

from typing import Final

import msgspec

from payrelay.core.answers import Answer, found
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.core.views import view_of
from payrelay.errors import Code, Refusal
from payrelay.flows.access.lost_owners import is_reserved, require_unreserved
from payrelay.flows.access.ownership import is_foreign, is_foreign_plan, plan_owners, visible_principals
from payrelay.flows.pagination import answer_page
from payrelay.flows.relay import Relay, Request
from payrelay.store.subscriptions import Installment, SubscriptionSummary

STATE_SENTENCES: Final[dict[SubscriptionState, str]] = {
    SubscriptionState.ACTIVE: "It goes on.",
    SubscriptionState.STOPPED: "It was stopped or cancelled; the gateway charges no more, unless it is retried.",
    SubscriptionState.COMPLETED: "All installments are paid.",
}
FAILING_SENTENCE: Final = "It goes on; the last installment failed and is tried again by the gateway."


class InstallmentView(msgspec.Struct, frozen=True, kw_only=True):
    """One installment. Its id is null where the gateway named none; its time is RFC 3339 in UTC."""

    payment_id: str | None
    amount: msgspec.Raw
    at: str


class SubscriptionStateView(msgspec.Struct, frozen=True, kw_only=True):
    """The stored state of a subscription.

    ``as_of`` is when the state became known, by a notification or a read. ``is_failing`` is true where the newest
    installment failed. ``next_on`` is a date; null where no further installment is due or known.
    """

    subscription_id: str
    state: SubscriptionState
    explanation: str
    is_failing: bool
    order_id: str | None
    amount: msgspec.Raw
    currency: str | None
    installments_paid: int
    next_on: str | None
    last_paid: InstallmentView | None
    last_failure: InstallmentView | None
    as_of: str


async def show_subscription_state(relay: Relay, request: Request, subscription_id: str) -> Answer:
    """Answers with one subscription; raises Refusal (not_found) where no state of it is stored, or it is foreign."""
    merchant = relay.account(request.account).merchant
    summary = await relay.subscriptions.summary(merchant, subscription_id)
    if summary is None or await is_foreign_plan(relay, request, int(subscription_id)):
        await relay.database.lost_commits.require_known(None, "subscription")
        raise Refusal(
            Code.NOT_FOUND, "nothing is known of such a subscription here; GET subscriptions asks the gateway"
        )
    if not await plan_owners(relay, request, subscription_id):
        await require_unreserved(relay, request, "subscription")
    return found(view(summary))


async def list_subscription_states(relay: Relay, request: Request, *, after: str, limit: int) -> Answer:
    """Answers a page of the subscriptions that aren't foreign, by id; a Link header leads to a next page."""
    summaries = await _visible(relay, request, after, limit + 1)
    return answer_page(
        request,
        "subscription-states",
        summaries,
        limit,
        show=view,
        id_of=lambda each: each.subscription.subscription_id,
        query={},
    )


async def _visible(relay: Relay, request: Request, after: str, limit: int) -> list[SubscriptionSummary]:
    """Reads the next subscriptions that aren't foreign; the owner of some is found by their order only."""
    merchant, principals = relay.account(request.account).merchant, await visible_principals(relay, request)
    visible: list[SubscriptionSummary] = []
    are_reserved = await is_reserved(relay, request)
    while len(visible) < limit:
        page = await relay.subscriptions.list(merchant, after=after, limit=limit, principals=principals)
        for summary in page:
            subscription = summary.subscription
            if subscription.principal is not None or await _is_own(
                relay, request, subscription.subscription_id, are_reserved=are_reserved
            ):
                visible.append(summary)
        if len(page) < limit:
            break
        after = page[-1].subscription.subscription_id
    return visible[:limit]


async def _is_own(relay: Relay, request: Request, subscription_id: str, *, are_reserved: bool) -> bool:
    owners = await plan_owners(relay, request, subscription_id)
    return not (are_reserved and not owners) and not await is_foreign(relay, request, owners)


def view(summary: SubscriptionSummary) -> SubscriptionStateView:
    """Returns a subscription as a client sees it."""
    subscription = summary.subscription
    is_failing = subscription.state is SubscriptionState.ACTIVE and _is_newer(summary.last_failure, summary.last_paid)
    return view_of(
        subscription,
        SubscriptionStateView,
        explanation=FAILING_SENTENCE if is_failing else STATE_SENTENCES[subscription.state],
        is_failing=is_failing,
        installments_paid=summary.paid,
        last_paid=_installment(summary.last_paid),
        last_failure=_installment(summary.last_failure),
    )


def _is_newer(failure: Installment | None, paid: Installment | None) -> bool:
    """Tells whether a failure came after a payment: by the payments' ids, which grow, not by the times of arrival."""
    if failure is None or paid is None:
        return failure is not None
    if failure.payment_id is None or paid.payment_id is None:
        return failure.at_ms > paid.at_ms
    return int(failure.payment_id) > int(paid.payment_id)


def _installment(installment: Installment | None) -> InstallmentView | None:
    return None if installment is None else view_of(installment, InstallmentView)
