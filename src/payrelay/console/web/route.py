"""A page of the console: its address, who may open it, and what answers. Other parts bring pages of their own."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import NamedTuple, TypeAlias

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.web.asked import Asked
from payrelay.core.operators.roles import Act
from payrelay.parts import parts

Facts: TypeAlias = list[tuple[str, str]]
"""What an act is about, as pairs of a title and a text."""


async def nothing_known(_asked: Asked) -> Facts:
    """Of what is never asked the second factor for."""
    return []


Handler = Callable[[Asked], Awaitable[ConsoleAnswer]]


class Entry(StrEnum):
    """How far somebody must have come to open a page."""

    ANYBODY = "anybody"
    HALF = "half"
    """The password was right."""
    OPEN = "open"


class ConsoleRoute(NamedTuple):
    """A page, or what a form of it does.

    Attributes:
        method: GET or POST.
        path: parts in braces are whatever stands there.
        handler: answers.
        act: what the visitor's role must allow; None for pages that are open before a role is known.
        entry: how far somebody must have come.
        about: reads what a form acts on, for the page that asks for the second factor first.
    """

    method: str
    path: str
    handler: Handler
    act: Act | None = None
    entry: Entry = Entry.OPEN
    about: Callable[[Asked], Awaitable[Facts]] = nothing_known


class PartPages(NamedTuple):
    """The pages of another part.

    Attributes:
        routes: the pages.
        navigation: what leads there from every page: address, name, and what a role must allow to see it.
    """

    routes: tuple[ConsoleRoute, ...]
    navigation: tuple[tuple[str, str, Act], ...]


@cache
def further_pages() -> tuple[PartPages, ...]:
    """Loads the pages of the other parts."""
    return tuple(import_module(f"{part.pages}.table").PAGES for part in parts() if part.pages is not None)
