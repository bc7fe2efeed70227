"""Who may do something in the demo: whoever has its key, and somebody who can sign in to the console."""

from payrelay.app import Service
from payrelay.app_commands import opened_operators
from payrelay.clock import Clock
from payrelay.demo.demo_operator import DemoOperator, demo_operator
from payrelay.flows.access.issue_key import IssuedKey, KeyRequest, issue_key
from payrelay.settings import Settings


async def key_of(service: Service) -> IssuedKey:
    """Makes the key that is printed, and that the shop has."""
    return await issue_key(service.credentials, Clock(), KeyRequest(principal="demo", environment="sandbox"))


async def operator_of(settings: Settings) -> DemoOperator | None:
    """Adds somebody who can sign in to the console; None where there is no console."""
    if not settings.console.enabled:
        return None
    async with opened_operators(settings, Clock()) as parts:
        return await demo_operator(parts)
