"""Shows operations to their clients: state, history and evidence, in sentences that can be read out to a customer."""

from typing import Final

import msgspec

from payrelay.core.access.bounds import has_customer, has_operation, has_order, key_as_sent
from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer, found
from payrelay.core.payments.operation import Operation, OperationFilter
from payrelay.errors import Code, Refusal
from payrelay.flows.pagination import answer_page
from payrelay.flows.payments.operation_views import (
    ChargebackView,
    FinishedAnswer,
    OperationDetail,
    OperationView,
    chargeback_view,
    history_entry,
    view,
)
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.resolve import inquire_now

PAGE_SIZE_MAX: Final = 100
"""Operations on one page; each is under 1 KiB."""


async def list_operations(
    relay: Relay, request: Request, operation_filter: OperationFilter, *, before: str | None, limit: int
) -> Answer:
    """Answers with a page, newest first; a Link header leads to the next one where there are more.

    The filter is narrowed to the account in the path and, unless the caller may see all, to the caller's own
    operations. ``before`` is the id of the last operation of the page before. ``limit`` is 1 to PAGE_SIZE_MAX.
    """
    narrowed = _narrowed(operation_filter, request)
    operations = [] if narrowed is None else await relay.journal.list(narrowed, before=before, limit=limit + 1)
    return answer_page(
        request,
        "operations",
        operations,
        limit,
        show=lambda each: operation_as_seen(each, request),
        id_of=lambda each: each.id,
        query={**msgspec.structs.asdict(operation_filter), "principal": None, "account": None},
    )


async def show_operation(relay: Relay, request: Request, operation_id: str) -> Answer:
    """Answers with one operation, and begins a status inquiry where its outcome is open.

    Raises Refusal (not_found) for an operation that the caller may not see.
    """
    return await _show(relay, request, await relay.journal.get(operation_id), operation_id)


async def show_operation_by_key(relay: Relay, request: Request, idempotency_key: str) -> Answer:
    """Answers with the newest operation under an Idempotency-Key, for an app that was killed before its answer.

    Raises Refusal (not_found) where the caller may see none.
    """
    principal = None if _sees_all(request) else request.principal
    of_person = None if request.credential.bound else relay.access.person_names.key_as_stored(idempotency_key)
    found = [
        await relay.journal.newest_by_key(request.account, principal, each)
        for each in (idempotency_key, of_person)
        if each is not None
    ]
    operation = max((each for each in found if each is not None), key=lambda each: each.id, default=None)
    return await _show(relay, request, operation, None)


async def _show(relay: Relay, request: Request, operation: Operation | None, operation_id: str | None) -> Answer:
    if operation is None or not may_see(request, operation):
        await relay.database.lost_commits.require_known(operation_id, "operation")
        raise Refusal(Code.NOT_FOUND, "there is no such operation")
    inquire_now(relay, operation)
    history = await relay.journal.history(operation.id)
    answer = await relay.journal.answer_of(operation.id) if operation.principal == request.principal else None
    shown = OperationDetail(
        **msgspec.structs.asdict(operation_as_seen(operation, request)),
        history=[history_entry(entry) for entry in history],
        chargebacks=await chargebacks_of(relay, operation.id),
        answer=None
        if answer is None
        else FinishedAnswer(http_status=answer.http_status, body=msgspec.Raw(answer.body)),
    )
    return found(shown)


async def chargebacks_of(relay: Relay, operation_id: str) -> list[ChargebackView]:
    """Returns the chargebacks of an operation's payments. Raises StoreError."""
    return [chargeback_view(each) for each in await relay.money.chargebacks.of_operation(operation_id)]


def may_see(request: Request, operation: Operation) -> bool:
    """True where an operation on this account belongs to the caller, or the caller may see all.

    A bound credential sees only operations within its bounds.
    """
    is_own = operation.principal == request.principal or _sees_all(request)
    return operation.account == request.account and is_own and has_operation(request.credential.bound, operation)


def _narrowed(operation_filter: OperationFilter, request: Request) -> OperationFilter | None:
    """Narrows a filter to what the caller may see; None where the two have nothing in common."""
    principal = None if _sees_all(request) else request.principal
    narrowed = msgspec.structs.replace(operation_filter, principal=principal, account=request.account)
    bound = request.credential.bound
    if bound is None:
        return narrowed
    if not has_order(bound, narrowed.order_id or bound.order_id):
        return None
    if not has_customer(bound, narrowed.customer_id or bound.customer_id):
        return None
    return msgspec.structs.replace(
        narrowed, order_id=bound.order_id or narrowed.order_id, customer_id=bound.customer_id or narrowed.customer_id
    )


def operation_as_seen(operation: Operation, request: Request) -> OperationView:
    """Returns an operation as this caller sees it, in a list."""
    key = key_as_sent(request.credential.bound, operation.idempotency_key)
    return view(msgspec.structs.replace(operation, idempotency_key=key))


def _sees_all(request: Request) -> bool:
    return Scope.OPERATIONS_READ_ALL in request.credential.scopes
