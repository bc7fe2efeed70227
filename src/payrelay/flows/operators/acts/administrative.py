"""Pauses, replays, revocations, erasures and the closing of pages: acts without an effect at the gateway.

Each may be done twice without harm, where a process died in the midst of it.
"""

from typing import Final

from payrelay.core.gateways.pauses import Pause
from payrelay.core.operators.roles import Act
from payrelay.errors import Code, Refusal
from payrelay.flows.access.issue_key import revoke_key
from payrelay.flows.checkouts.close_checkout import close_page
from payrelay.flows.customers.erase_customer import erase
from payrelay.flows.events.manage_endpoints import Owner, ReplayedEvents, replay_events, send_test_event
from payrelay.flows.notifications.replay_notification import NotReplayedError, UnknownNotificationError, replay
from payrelay.flows.operators.acting import ActResult, ConfirmedAct
from payrelay.flows.operators.acts.act_registry import CarryOut
from payrelay.flows.operators.pause_account import pause_account, resume_account
from payrelay.flows.relay import Relay

UNLISTED: Final = (
    " It could not be added to the list outside the database: after the database is put back to an earlier copy, it has"
    " to be done again."
)


async def _pause(relay: Relay, act: ConfirmedAct) -> ActResult:
    now_ms, account = relay.clock.now_ms(), act.target.account
    pause = Pause(account=account, since_ms=now_ms, reason=act.reason, operator=act.operator)
    change = await pause_account(relay.pauses, relay.database.revocations, pause)
    said = f"The account {account} is paused: within a second no process begins anything new on it."
    return ActResult(said=said + ("" if change.is_listed else UNLISTED))


async def _resume(relay: Relay, act: ConfirmedAct) -> ActResult:
    account, seen_ms = act.target.account, int(act.confirmation.seen.partition(".")[0])
    change = await resume_account(
        relay.pauses, relay.database.revocations, account, relay.clock.now_ms(), seen_ms=seen_ms
    )
    if change.earlier is None and any(each.account == account for each in await relay.pauses.list()):
        raise Refusal(Code.CONFLICT, f"the account {account} was paused anew meanwhile, and that pause stays")
    said = f"The account {account} is open again within a second."
    return ActResult(said=said + ("" if change.is_listed else UNLISTED))


async def _close_checkout(relay: Relay, act: ConfirmedAct) -> ActResult:
    checkout = await relay.checkouts.get(act.target.id)
    if checkout is None:
        raise Refusal(Code.NOT_FOUND, "there is no such checkout")
    closed = await close_page(relay, checkout)
    said = "The page leads nobody to the gateway any more, and the order is free."
    return ActResult(said=said + (STILL_PAYABLE if closed.may_still_be_paid else ""))


async def _replay_notification(relay: Relay, act: ConfirmedAct) -> ActResult:
    try:
        notification = await replay(relay, act.target.id)
    except (NotReplayedError, UnknownNotificationError) as error:
        raise Refusal(Code.CONFLICT, str(error)) from None
    return ActResult(said=f"It is being worked on again. Its state is {notification.state.replace('_', ' ')} now.")


async def _send_test_event(relay: Relay, act: ConfirmedAct) -> ActResult:
    event_id = await send_test_event(relay.dispatch, _owner_of(relay, act), act.target.id)
    return ActResult(said=f"The test event {event_id} is queued for the endpoint.")


async def _replay_event(relay: Relay, act: ConfirmedAct) -> ActResult:
    ids = tuple(act.confirmation.filled["event_ids"].split())
    replayed = await replay_events(relay.dispatch, _owner_of(relay, act), act.target.id, ReplayedEvents(ids=ids))
    return ActResult(said=f"Events that are queued for the endpoint again: {replayed.events}.")


def _owner_of(relay: Relay, act: ConfirmedAct) -> Owner:
    target = act.target
    return Owner(account=target.account, merchant=relay.account(target.account).merchant, principal=target.principal)


async def _erase(relay: Relay, act: ConfirmedAct) -> ActResult:
    customer = await relay.customers.get(act.target.id) or await relay.customers.left_of(act.target.id)
    if customer is None:
        raise Refusal(Code.NOT_FOUND, "there is no such customer")
    erasure = await erase(relay, customer)
    left = "" if erasure.files_cleared else " The database's files still have to be cleared; that goes on by itself."
    return ActResult(said=f"The customer's personal data is erased, and the card can't be charged any more.{left}")


async def _revoke_key(relay: Relay, act: ConfirmedAct) -> ActResult:
    revocation = await revoke_key(relay.access.credentials, relay.database.revocations, relay.clock, act.target.id)
    return ActResult(said="The key opens nothing any more." + ("" if revocation.is_listed else UNLISTED))


STILL_PAYABLE: Final = " A form of it is out, and can't be taken back: the customer may still pay by it."

ADMINISTRATIVE: Final[dict[Act, CarryOut]] = {
    Act.CLOSE_CHECKOUT: _close_checkout,
    Act.PAUSE_ACCOUNT: _pause,
    Act.RESUME_ACCOUNT: _resume,
    Act.REPLAY_NOTIFICATION: _replay_notification,
    Act.SEND_TEST_EVENT: _send_test_event,
    Act.REPLAY_EVENT: _replay_event,
    Act.ERASE_CUSTOMER: _erase,
    Act.REVOKE_KEY: _revoke_key,
}
"""The acts without an effect at the gateway."""
