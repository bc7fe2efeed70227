"""What these lists share: the options that narrow each of them, and how an amount is written."""

from typing import Annotated, Final

import msgspec
import typer

LISTED_MAX: Final = 1_000
"""Entries of one list; nobody reads a longer one."""

Account = Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Only those on this account.")]
Order = Annotated[str | None, typer.Option(metavar="ORDER", help="Only those of this order.")]
Limit = Annotated[int, typer.Option(metavar="COUNT", help="How many.", min=1, max=LISTED_MAX)]


def amount_text(currency: str | None, amount: msgspec.Raw, otherwise: str = "amount not known") -> str:
    """Writes an amount with its currency; ``otherwise`` where it is null."""
    text = bytes(amount).decode()
    return f"{currency or ''} {otherwise if text == 'null' else text}".strip()
