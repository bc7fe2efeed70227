"""The command for client tokens: rotates the key that signs them, beside a running server."""

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import awaited, examples, group
from payrelay.cli.terminal.messages import DONE, REFUSED, CommandError, say
from payrelay.clock import Clock
from payrelay.errors import Outdated

app = group("client-tokens", "Client tokens: what an app pays one order with.")


@app.command("rotate-key", epilog=examples("payrelay client-tokens rotate-key"))
@awaited
async def rotate_key() -> int:
    """Sign client tokens with a new key.

    Tokens of the previous key stay valid until they end.
    """
    from payrelay.app_commands import opened_signing_keys

    async with opened_signing_keys(read_settings(), Clock()) as keys:
        try:
            key = await keys.rotate()
        except Outdated:
            raise CommandError("another process has just made a new key; nothing was changed", REFUSED) from None
    say(f"Client tokens are now signed with key {key.id}; tokens of the previous key stay valid.")
    return DONE
