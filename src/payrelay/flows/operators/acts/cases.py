"""What needs a person: the queue, who sees to each case, and notes about it."""

import msgspec

from payrelay.core.notifications.notification import Notification, NotificationFilter, NotificationState
from payrelay.core.operators.confirmations import Confirmation
from payrelay.core.operators.roles import Act
from payrelay.core.payments.operation import State
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.stale import LINES_MAX, line_of, require_fresh
from payrelay.flows.operators.acts.studies import assigned_in
from payrelay.flows.operators.parts import Actor, OperatorParts
from payrelay.flows.operators.review import (
    OrderPaidAgain,
    ReviewEntry,
    ReviewFilter,
    list_for_operator,
    list_paid_again,
)
from payrelay.flows.relay import Relay

QUEUE_MAX = 50
"""Cases of one kind on the page of the queue."""


class QueuedCase(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person: where its page is, why, since when, and who sees to it."""

    noun: str
    id: str
    why: str
    since_ms: int
    account: str
    principal: str
    order_id: str | None
    amount_minor: int | None
    currency: str | None
    kind: str
    assigned_to: str | None


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """What needs a person, oldest first; ``has_more`` names the lists that are longer than the page.

    ``paid_again`` are the orders that were paid again lately, and have more than one payment still.
    """

    attention: list[QueuedCase]
    held: list[QueuedCase]
    notifications: list[QueuedCase]
    paid_again: list[OrderPaidAgain]
    proposed: list[Confirmation]
    has_more: frozenset[str]


async def read_queue(parts: OperatorParts, relay: Relay, actor: Actor) -> Queue:
    """Returns what needs a person. Raises Refusal (forbidden), StoreError."""
    actor.require(Act.LOOK)
    more = set()
    cases: dict[State, list[QueuedCase]] = {}
    for state in (State.NEEDS_ATTENTION, State.HELD):
        groups = await list_for_operator(relay, ReviewFilter(state=state, limit=QUEUE_MAX))
        cases[state] = [await _of_operation(parts, each) for group in groups for each in group.entries]
        more |= {state.value for group in groups if group.has_more}
    wanted = NotificationFilter(state=NotificationState.NEEDS_ATTENTION)
    notifications = await relay.inbox.list(wanted, before=None, limit=QUEUE_MAX + 1)
    if len(notifications) > QUEUE_MAX:
        more.add("notifications")
    shown = [await _of_notification(parts, each) for each in notifications[:QUEUE_MAX]]
    return Queue(
        attention=cases[State.NEEDS_ATTENTION],
        held=cases[State.HELD],
        notifications=shown[::-1],
        paid_again=await list_paid_again(relay, limit=QUEUE_MAX),
        proposed=[actor.without_words(each, reason="") for each in await parts.confirmations.proposed()],
        has_more=frozenset(more),
    )


async def add_note(
    parts: OperatorParts, relay: Relay, actor: Actor, target: ActTarget, *, seen: str, text: str
) -> None:
    """Writes a note about a thing into the history. Raises Refusal (forbidden), StalePageError, StoreError."""
    await _write(parts, relay, actor, target, seen=seen, line=(Act.ADD_NOTE, text, ""))


async def assign(
    parts: OperatorParts, relay: Relay, actor: Actor, target: ActTarget, *, seen: str, email: str, reason: str
) -> None:
    """Writes down who sees to a case from now on; an empty address for nobody.

    Raises Refusal: forbidden; not_found where no operator who can sign in has the address. Raises StalePageError,
    StoreError.
    """
    if email:
        operator = await parts.operators.by_email(email)
        if operator is None or operator.state == "disabled":
            raise Refusal(Code.NOT_FOUND, "no operator who can sign in has this address")
    await _write(parts, relay, actor, target, seen=seen, line=(Act.ASSIGN_CASE, reason, email))


async def _write(
    parts: OperatorParts, relay: Relay, actor: Actor, target: ActTarget, *, seen: str, line: tuple[Act, str, str]
) -> None:
    act, reason, details = line
    actor.require(act)
    await require_fresh(parts, relay, target, seen)
    new = actor.did(act, target.subject, at_ms=parts.clock.now_ms(), reason=reason, details=details)
    if await parts.acts.write_line(new, line_of(seen)) is None:
        await require_fresh(parts, relay, target, seen)


async def _of_operation(parts: OperatorParts, entry: ReviewEntry) -> QueuedCase:
    operation = entry.operation
    return QueuedCase(
        noun="operation",
        id=operation.id,
        why=entry.why,
        since_ms=operation.created_at_ms,
        account=operation.account,
        principal=operation.principal,
        order_id=operation.order_id,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        kind=operation.kind.replace("release", "void"),
        assigned_to=assigned_in(await parts.acts.about(f"operation/{operation.id}", LINES_MAX)),
    )


async def _of_notification(parts: OperatorParts, notification: Notification) -> QueuedCase:
    return QueuedCase(
        noun="notification",
        id=notification.id,
        why=notification.reason.phrase,
        since_ms=notification.received_at_ms,
        account=notification.account,
        principal="",
        order_id=notification.order_id,
        amount_minor=notification.amount_minor,
        currency=notification.currency,
        kind=notification.kind,
        assigned_to=assigned_in(await parts.acts.about(f"notification/{notification.id}", LINES_MAX)),
    )
