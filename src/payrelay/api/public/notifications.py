"""The handler of the gateway's notifications."""

from functools import partial
from typing import Final

from payrelay.api.http.incoming_request import read_body, require_type
from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.public.caller import Caller
from payrelay.flows.notifications.ingest import ingest_notification
from payrelay.flows.relay import Relay

EMPTY: Final = PlainAnswer(
    body=b"",
    raw_headers=((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), (b"server", b"payrelay")),
)
"""The answer to a notification that was ingested."""


async def receive_notification(relay: Relay, caller: Caller) -> PlainAnswer:
    """Ingests a notification; raises Refusal for a body that is none, or not the gateway's."""
    require_type(caller.headers, relay.account(caller.account).capabilities.notification_type)
    body = await read_body(caller.receive, caller.headers, caller.body_timeout)
    may_store = partial(caller.refused_senders.may_store, caller.account, caller.client, relay.clock.now_ms())
    await ingest_notification(relay, caller.account, caller.headers.texts(), body, may_store_refused=may_store)
    return EMPTY
