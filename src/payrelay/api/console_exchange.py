"""A request to the console and its answer, as the server's layer and the console's hand them to each other."""

from collections.abc import AsyncGenerator

import msgspec


class ConsoleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the console.

    Attributes:
        method: as the browser sent it.
        path: the raw path, without the query.
        query: without the question mark.
        headers: with names in lower case; of doubled ones the last.
        body: whole; empty where there is none.
        client: the address that it comes from, behind trusted proxies.
        request_id: names the request in the log.
    """

    method: str
    path: bytes
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    client: str
    request_id: str


class ConsoleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of the console.

    Attributes:
        status, headers, body: as the browser gets them.
        route: the template of the path, for the log.
        stream: what follows the body, piece by piece, until it ends; None where nothing does.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    route: str
    stream: AsyncGenerator[bytes, None] | None = None
