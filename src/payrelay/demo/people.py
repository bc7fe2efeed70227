"""Who may do something in the demo: whoever has its key, and somebody who can sign in to the console."""

import secrets
from typing import NamedTuple

from payrelay.app import Service, opened_resources
from payrelay.clock import Clock
from payrelay.console.flows.opening import console_parts
from payrelay.console.flows.parts import Browser, ConsoleParts
from payrelay.console.flows.sign_in import accept_invitation
from payrelay.core.operators.roles import Role
from payrelay.flows.access.issue_key import IssuedKey, KeyRequest, issue_key
from payrelay.flows.operators.manage_operators import NewOperator, add_operator
from payrelay.flows.operators.parts import Actor
from payrelay.settings import Settings


class DemoOperator(NamedTuple):
    """How to sign in to the console of a demo."""

    email: str
    password: str


async def key_of(service: Service) -> IssuedKey:
    """Makes the key that is printed, and that the shop has."""
    return await issue_key(service.credentials, Clock(), KeyRequest(principal="demo", environment="sandbox"))


async def operator_of(settings: Settings) -> DemoOperator | None:
    """Adds somebody who can sign in to the console; None where there is no console."""
    if not settings.console.enabled:
        return None
    async with opened_resources(settings, Clock()) as shared:
        return await demo_operator(console_parts(shared, Clock()))


async def demo_operator(parts: ConsoleParts) -> DemoOperator:
    """Adds the operator, who has accepted. Raises StoreError; Refusal (conflict) where it is there already."""
    made = DemoOperator("demo@shop.example", secrets.token_urlsafe(12))
    new = NewOperator(email=made.email, name="Demo", role=Role.ADMIN)
    invited = await add_operator(parts, Actor("the demo"), new, "to look around")
    await accept_invitation(parts, invited.token.reveal(), made.password, Browser("127.0.0.1", "the demo"))
    return made
