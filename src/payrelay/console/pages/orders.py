"""One order with its line of time, the gateway's record of it on request, and one operation."""

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.cases.ask_gateway import GatewayRecord, ask_gateway
from payrelay.console.flows.cases.one_operation import show_operation as one_operation
from payrelay.console.flows.cases.one_order import show_order
from payrelay.console.pages.target import actions_on
from payrelay.console.rules.timeline import checkout_tone
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import order_path, written
from payrelay.core.orders.sentences import UNDONE_SENTENCE, headline, status_text
from payrelay.core.payments.explanations import request_phrase
from payrelay.core.payments.sentences import STATE_SENTENCES


async def show(asked: Asked) -> ConsoleAnswer:
    """Shows an order."""
    return await _shown(asked, None)


async def ask(asked: Asked) -> ConsoleAnswer:
    """Asks the gateway what it has of an order, and shows that above the line of time."""
    account, order_id = asked.names
    request_id = asked.request.request_id
    record = await ask_gateway(asked.parts, asked.cases, asked.actor, (account, order_id), request_id=request_id)
    return await _shown(asked, record)


async def show_operation(asked: Asked) -> ConsoleAnswer:
    """Shows one operation with its history."""
    shown = await one_operation(asked.cases, asked.actor, asked.names[0])
    phrase = request_phrase(shown.operation)
    found = await actions_on(asked, [("operation", shown.operation.id, "it")])
    return asked.page(
        "operation.html",
        shown=shown,
        title=f"{phrase[:1].upper()}{phrase[1:]}",
        undone=UNDONE_SENTENCE,
        actions=found.actions,
        without=found.without,
    )


async def _shown(asked: Asked, record: GatewayRecord | None) -> ConsoleAnswer:
    account, order_id = asked.names
    order = await show_order(asked.cases, asked.actor, account, order_id)
    things = [("operation", each.id, f"the {each.kind.value} that needs a person") for each in order.awaiting]
    things += [("payment", f"{account}~{each}", f"payment {each}") for each in sorted(order.payments)]
    plans = [each.subscription.subscription_id for each in order.subscriptions]
    things += [("subscription", f"{account}~{each}", f"subscription {each}") for each in plans]
    found = await actions_on(asked, things)
    return asked.page(
        "order.html",
        live=order_path(order_id, account),
        tells=True,
        order=order,
        payments=order.payments,
        can_ask=order.is_configured,
        hides_customers=order.hides_customers,
        record=record,
        money=order.money,
        answer=headline(order.money.balance, lambda at_ms: written(at_ms, asked.sent.zone)),
        undone=UNDONE_SENTENCE,
        status_text=status_text,
        phrase=request_phrase,
        sentences=STATE_SENTENCES,
        checkout_tone=checkout_tone,
        actions=found.actions,
        without=found.without,
    )
