"""The operator of a demo: may do everything, with a password that the demo prints."""

import secrets
from typing import NamedTuple

from payrelay.console.flows.parts import Actor, Browser, ConsoleParts
from payrelay.console.flows.sign_in import accept_invitation
from payrelay.core.operators.roles import Role
from payrelay.flows.operators.manage_operators import NewOperator, add_operator


class DemoOperator(NamedTuple):
    """How to sign in to the console of a demo."""

    email: str
    password: str


async def demo_operator(parts: ConsoleParts) -> DemoOperator:
    """Adds the operator, who has accepted. Raises StoreError; Refusal (conflict) where it is there already."""
    made = DemoOperator("demo@shop.example", secrets.token_urlsafe(12))
    new = NewOperator(email=made.email, name="Demo", role=Role.ADMIN)
    invited = await add_operator(parts, Actor("the demo"), new, "to look around")
    await accept_invitation(parts, invited.token.reveal(), made.password, Browser("127.0.0.1", "the demo"))
    return made
