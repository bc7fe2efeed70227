"""The command for client tokens: another key to sign them with, beside a running server."""

import typer

from payrelay.cli.session import DONE, REFUSED, awaited, complain, read_settings, say, session
from payrelay.errors import Outdated

app = typer.Typer(name="client-tokens", help="Client tokens: what phones are given.", no_args_is_help=True)


@app.command("rotate-key")
@awaited
async def rotate_key() -> int:
    """Sign client tokens with a new key; those of the key before it stay good."""
    async with session(read_settings()) as relay:
        try:
            key = await relay.signing_keys.rotate()
        except Outdated:
            complain("somebody else has just made a new key; nothing was changed")
            return REFUSED
    say(f"Client tokens are now signed with key {key.id}; those that the key before it has signed stay good.")
    return DONE
