"""What the console brings."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from payrelay.parts import Part

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from payrelay.api.console_door import ConsolePages
    from payrelay.flows.relay import Relay
    from payrelay.settings import Settings
    from payrelay.store.opened_store import OpenedStore


def _site(
    stack: AsyncExitStack, settings: "Settings", store: "OpenedStore", relay: "Relay", log: "FilteringBoundLogger"
) -> "ConsolePages | None":
    """Loads nothing where the console is off: forms, passkeys and templates are a tenth of a start."""
    if not settings.console.enabled:
        return None
    from payrelay.console.opening import console_of

    return console_of(stack, settings.console, store, relay, log)


PART: Final = Part(commands={"operators": "payrelay.console.commands.operators"}, site=_site)
