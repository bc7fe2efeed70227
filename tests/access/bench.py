"""The whole API in one process over a simulated gateway, and a caller that may come with any credential."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from tests.databases import sqlite_url
from tests.scenarios.identity_provider import IdentityProvider

from payrelay.api.app import Api
from payrelay.api.http.incoming_request import Message
from payrelay.api.http.request_log import json_log
from payrelay.app import Service, running
from payrelay.clock import Clock
from payrelay.core.access.client_token import CLIENT_SCOPES
from payrelay.core.access.credential import Scope
from payrelay.core.secret import Secret
from payrelay.flows.access.issue_key import KeyRequest, issue_key, revoke_key
from payrelay.settings import IdentitySettings, Settings, gateway_settings
from payrelay_simulator import DEFAULT_MERCHANT, Simulator, Switches, World
from payrelay_simulator import Clock as GatewayClock
from payrelay_simulator import serve as serve_simulator

ACCOUNT: Final = "gateway"
OTHER_ACCOUNT: Final = "second"
SHOP: Final = "shop"
RIVAL: Final = "rival"
MATE: Final = "web"
"""In one group with the shop."""
PATIENCE_S: Final = 20.0
CLAIMS: Final = {"order_claim": "order", "amount_claim": "amount", "currency_claim": "currency"}
"""The claims with which an identity provider's token could pay; the tokens of the table name no amount."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came back; the body is empty where the answer is a stream."""

    status: int
    body: bytes

    @property
    def data(self) -> Any:  # noqa: ANN401, of any route
        """The member `data` of a success."""
        assert self.status == 200, self
        return json.loads(self.body)["data"]

    @property
    def code(self) -> str | None:
        """The error's code; None where there is no error."""
        error = json.loads(self.body).get("error") if self.body else None
        return None if error is None else str(error["code"])


@dataclass(kw_only=True)
class Bench:
    """A running service, the world of its gateway, and the keys of two principals.

    Attributes:
        service, world: the service and the world.
        provider: an identity provider whose tokens are the shop's customers'.
        keys: by principal, with the default scopes.
    """

    service: Service
    world: World
    provider: IdentityProvider
    keys: dict[str, str] = field(default_factory=dict)
    _requests: int = 0
    _delivered: int = 0

    @property
    def api(self) -> Api:
        """The API as an ASGI callable."""
        return self.service.api

    async def new_key(self, principal: str, *, is_revoked: bool = False, **members: Any) -> str:  # noqa: ANN401
        """Issues a key, and revokes it where it is to be revoked."""
        credentials, clock = self.service.credentials, self.service.relay.clock
        issued = await issue_key(credentials, clock, KeyRequest(principal=principal, environment="sandbox", **members))
        if is_revoked:
            await revoke_key(credentials, self.service.relay.database.revocations, clock, issued.credential.id)
        return issued.key

    async def new_token(self, members: dict[str, Any], scopes: Iterable[Scope]) -> str:
        """Issues a client token with the shop's key."""
        body = {**members, "scopes": sorted(scopes)}
        return str((await self.ask(self.keys[SHOP], "POST", "client-tokens", body)).data["token"])

    async def ask(
        self,
        credential: str | None,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        account: str = ACCOUNT,
    ) -> Reply:
        """Asks the API, each time from another address, so that wrong credentials are not slowed down."""
        headers = [("authorization", f"Bearer {credential}")] if credential is not None else []
        if key is not None:
            headers.append(("idempotency-key", key))
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            headers.append(("content-type", "application/json"))
        return await self._carry(method, f"/{account}/api/{path}", content, headers)

    async def post_form(self, path: str, fields: dict[str, str]) -> Reply:
        """Posts a form to a page that needs no credential."""
        headers = [("content-type", "application/x-www-form-urlencoded")]
        return await self._carry("POST", path, urlencode(fields).encode(), headers)

    async def get_page(self, path: str) -> Reply:
        """Opens a page that needs no credential."""
        return await self._carry("GET", path, b"", [])

    async def deliver(self) -> None:
        """Carries what the gateway has to tell to the service, where what follows from it happens a moment later."""
        for each in self.world.notifications.records(after=self._delivered):
            self._delivered = each.number
            if each.notify_url:
                reply = await self.post_form(urlsplit(each.notify_url).path, each.fields)
                assert reply.status == 200, reply

    async def until(self, ask: Callable[[], Awaitable[Reply]], is_so: Callable[[Reply], bool]) -> Reply:
        """Asks again until the answer is as wanted."""
        end_s = asyncio.get_running_loop().time() + PATIENCE_S
        while not is_so(reply := await ask()):
            assert asyncio.get_running_loop().time() < end_s, reply
            await asyncio.sleep(0.01)  # no event of the service can be waited for from outside
        return reply

    async def _carry(self, method: str, target: str, content: bytes, headers: list[tuple[str, str]]) -> Reply:
        self._requests += 1
        number = self._requests
        path, _, query = target.partition("?")
        headers = [*headers, ("content-length", str(len(content)))]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
            "client": (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 50_000),
        }
        messages: asyncio.Queue[Message] = asyncio.Queue()
        waiting: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Message:
            return waiting.pop() if waiting else await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(self.api(scope, receive, messages.put))
        start = await messages.get()
        is_stream = (b"content-type", b"text/event-stream") in {
            (name, value.partition(b";")[0]) for name, value in start["headers"]
        }
        if is_stream:
            task.cancel()
            await asyncio.wait([task])
            return Reply(status=start["status"], body=b"")
        await task
        return Reply(status=start["status"], body=(await messages.get())["body"])


@asynccontextmanager
async def opened_bench(folder: Path) -> AsyncIterator[Bench]:
    """Starts everything, in a database of its own."""
    simulator = Simulator(switches=Switches(rate_limit_calls=0, installments="calendar"), clock=GatewayClock.running())
    clock = Clock()
    with IdentityProvider() as provider:
        async with serve_simulator(simulator) as gateway:
            settings = _settings(folder, gateway.base_url, provider)
            async with running(settings, clock=clock, log=json_log(io.BytesIO(), clock)) as service:
                bench = Bench(service=service, world=simulator.world, provider=provider)
                bench.keys = {name: await bench.new_key(name) for name in (SHOP, RIVAL, MATE)}
                await service.relay.access.principals.put_into_group("ours", (SHOP, MATE), now_ms=clock.now_ms())
                yield bench


def _settings(folder: Path, base_url: str, provider: IdentityProvider) -> Settings:
    members = {
        "base_url": base_url,
        "app_id": DEFAULT_MERCHANT.app_id,
        "app_secret": DEFAULT_MERCHANT.app_secret,
        "merchant_id": DEFAULT_MERCHANT.merchant_id,
        "merchant_secret": DEFAULT_MERCHANT.merchant_secret,
        "rate_limit": "off",
    }
    identity = {name.removeprefix("PAYRELAY_IDENTITY__").lower(): value for name, value in provider.settings().items()}
    scopes = ",".join(sorted(CLIENT_SCOPES))
    return Settings(
        database_url=Secret(sqlite_url(folder / "payrelay.db")),
        gateways={name: gateway_settings(members) for name in (ACCOUNT, OTHER_ACCOUNT)},
        identity=IdentitySettings.model_validate(identity | CLAIMS | {"scopes": scopes}),
        public_url="http://127.0.0.1:9",
    )
