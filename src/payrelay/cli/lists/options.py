"""What these lists share: the options that narrow each of them, and how facts and amounts are written."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final

import msgspec
import typer

LISTED_MAX: Final = 1_000
"""Entries of one list; nobody reads a longer one."""

Account = Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Only those on this account.")]
Order = Annotated[str | None, typer.Option(metavar="ORDER", help="Only those of this order.")]
Limit = Annotated[int, typer.Option(metavar="COUNT", help="How many.", min=1, max=LISTED_MAX)]


def named_facts(members: Mapping[str, object]) -> list[tuple[str, str]]:
    """Gives what ``facts`` draws: the members under their names in words, and a dash for what isn't known."""
    return [(name.replace("_", " "), "-" if value is None else str(value)) for name, value in members.items()]


def amount_text(currency: str | None, amount: msgspec.Raw, otherwise: str = "amount not known") -> str:
    """Writes an amount with its currency, as everywhere for people; ``otherwise`` where it is null."""
    text = bytes(amount).decode()
    return f"{currency or ''} {otherwise if text == 'null' else f'{Decimal(text):,}'}".strip()
