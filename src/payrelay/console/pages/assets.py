"""The files that pages load: the style sheet and the scripts."""

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import asset


async def style_sheet(asked: Asked) -> ConsoleAnswer:  # noqa: ARG001 - one shape for all pages
    """Gives the style sheet."""
    return asset("console.css", "text/css")


async def live_script(asked: Asked) -> ConsoleAnswer:  # noqa: ARG001 - one shape for all pages
    """Gives the script of live pages."""
    return asset("live.js", "text/javascript")


async def passkey_script(asked: Asked) -> ConsoleAnswer:  # noqa: ARG001 - one shape for all pages
    """Gives the script that asks a device for a passkey."""
    return asset("passkeys.js", "text/javascript")
