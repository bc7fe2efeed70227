"""Stand-ins for the API's surroundings: flows that only record requests, a keyring, a clock, a client."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from tests.databases import sqlite_url

from payrelay.api.app import Api
from payrelay.api.http.incoming_request import Message
from payrelay.api.requests.route import ParsedRequest, Route
from payrelay.clock import Clock
from payrelay.core.access.credential import Credential, compose_key
from payrelay.core.answers import Answer, found
from payrelay.core.payments.operation import OpenCount, State
from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.flows.relay import Relay
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Unit
from payrelay.store.heartbeats import Beat

T = TypeVar("T")

KEY = compose_key("sandbox", "abcdefghijkl", "s" * 43)


class MovableClock(Clock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at_s = 1_800_000_000.0

    def now_ms(self) -> int:
        """Gives the time that the test has set."""
        return int(self.at_s * 1000)

    def boot_s(self) -> float:
        """Runs along with the other one."""
        return self.at_s


class Keyring:
    """A store: credentials and counts in dictionaries; counts the reads, and can be out of order."""

    def __init__(self) -> None:
        self.by_id: dict[str, Credential] = {}
        self.open: dict[State, OpenCount] = {State.UNKNOWN: OpenCount()}
        self.counted = 0
        self.reads = 0
        self.is_broken = False

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential."""
        self.reads += 1
        if self.is_broken:
            raise StoreUnavailable("the store is closed")
        return self.by_id.get(credential_id)

    async def open_operations(self) -> dict[State, OpenCount]:
        """Gives what the test has put here."""
        self.counted += 1
        await self.ping()
        return self.open

    async def beat(self, now_ms: int) -> Beat:
        """Takes a heartbeat as the database would."""
        await self.ping()
        return Beat(now_ms, None, is_own_lost=False)

    async def end(self) -> None:
        """Removes nothing."""

    async def ping(self) -> None:
        """Answers as the database would."""
        if self.is_broken:
            raise StoreUnavailable("the store is full", fault=StoreFault.DISK_FULL)


class LateDatabase:
    """The embedded database, opened at its first use: of hundreds of tests, few get that far."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._inner: Database | None = None
        self._opening = asyncio.Lock()

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Writes."""
        return await (await self._opened()).write(unit, is_patient=is_patient)

    async def read(self, unit: Unit[T]) -> T:
        """Reads."""
        return await (await self._opened()).read(unit)

    async def read_page(self, unit: Unit[T]) -> T:
        """Reads a list."""
        return await (await self._opened()).read_page(unit)

    async def clear_files(self, table: str) -> bool:
        """Clears its files."""
        return await (await self._opened()).clear_files(table)

    async def ping(self) -> None:
        """Checks that the database can be used."""
        await (await self._opened()).ping()

    async def close(self) -> None:
        """Closes it, where it was opened."""
        if self._inner is not None:
            await self._inner.close()

    async def _opened(self) -> Database:
        async with self._opening:
            if self._inner is None:
                self._inner = await open_database(sqlite_url(self._path), clock=self._clock, owner=True)
            return self._inner


class RecordingFlows:
    """The flow of every route: records the requests, and answers what the test has put here."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ParsedRequest]] = []
        self.answer: Answer | BaseException = found({"is": "done"})

    def behind(self, route: Route) -> Route:
        """Gives the route with this in place of its handler."""

        async def record(_: Relay, parsed: ParsedRequest) -> Answer:
            self.requests.append((route.name, parsed))
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

        return replace(route, handler=record)


class Reply(msgspec.Struct):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object."""
        return cast("dict[str, Any]", json.loads(self.body))


class Caller:
    """Speaks ASGI to an API as a server would; sends a valid key unless a test says otherwise."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(
        self,
        method: str,
        target: str,
        *,
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
        pieces: list[Message] | None = None,
        client: str = "127.0.0.1",
    ) -> Reply:
        """Sends one request and gives its answer."""
        given = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
        names = {name.lower() for name, _ in given}
        if "authorization" not in names:
            given.append(("Authorization", f"Bearer {KEY}"))
        if body and "content-type" not in names:
            given.append(("Content-Type", "application/json"))
        if body and pieces is None:
            given.append(("Content-Length", str(len(body))))
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given if value != ""],
            "client": (client, 50_000),
        }
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        waiting = whole if pieces is None else list(pieces)
        sent: list[Message] = []

        async def receive() -> Message:
            piece = waiting.pop(0)
            if piece["type"] == "wait":
                await piece["until"].wait()
            return piece

        async def send(message: Message) -> None:
            sent.append(message)

        await self._api(scope, receive, send)
        received = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Reply(status=sent[0]["status"], headers=received, body=sent[1]["body"])
