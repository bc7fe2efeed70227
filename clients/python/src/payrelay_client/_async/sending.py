"""Sends requests by the one retry rule, and reads what came back."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import httpx

from payrelay_client._async.runtime import Credential, HttpClient, credential_of, exchange, sleep, streaming
from payrelay_client.errors import Stopped
from payrelay_client.limits import Budget, Limits, Waiting
from payrelay_client.replies import NO_CREDENTIAL, NoReply, Reply, error_of, is_empty_list, next_cursor, read_reply
from payrelay_client.requests import Request
from payrelay_client.wire import SendFailed

LOG: Final = logging.getLogger("payrelay_client")

OnWait = Callable[[Waiting], None]


class Sender:
    """Sends requests to one account of the service, with one credential."""

    def __init__(
        self, http: HttpClient, address: str, credential: Credential, limits: Limits, on_wait: OnWait | None
    ) -> None:
        self._http = http
        self._address = address.rstrip("/")
        self._credential = credential
        self._token: str | None = None
        self.limits = limits
        self._on_wait = on_wait

    def budget(self) -> Budget:
        """Gives the limits of a call that begins now."""
        return Budget(self.limits, time.monotonic())

    async def ask(self, request: Request) -> Reply:
        """Sends what moves no money, and gives its success; raises PayrelayError for everything else."""
        got = await self.send(request, self.budget())
        if isinstance(got, Reply) and got.http_status == HTTPStatus.OK:
            return got
        raise error_of(got)

    async def ask_for_list(self, request: Request) -> Reply:
        """Sends a read of a list of the gateway's; its data is an empty list where the gateway has none of them."""
        got = await self.send(request, self.budget())
        if isinstance(got, Reply) and (got.http_status == HTTPStatus.OK or is_empty_list(got)):
            return got
        raise error_of(got)

    async def pages(self, first: Request) -> AsyncIterator[object]:
        """Gives the entries of a list, and fetches the next page when it is needed. Raises PayrelayError."""
        request: Request | None = first
        while request is not None:
            reply = await self.ask(request)
            for entry in reply.data if isinstance(reply.data, list) else ():
                yield entry
            cursor = next_cursor(reply.headers.get("link"))
            request = None if cursor is None else replace(first, query={**first.query, "cursor": cursor})

    async def send(self, request: Request, budget: Budget) -> Reply | NoReply:
        """Sends the very same request until there is an answer, or until the budget is used up.

        Gives the last answer: a success, a 202, an error that is final, or what was to be tried again.
        """
        is_renewed = False
        while True:
            budget.tries += 1
            got = await self.once(request, budget)
            if self._is_renewable(got) and not is_renewed:
                is_renewed, self._token = True, None
                continue
            budget.is_in_doubt = budget.is_in_doubt or self._leaves_doubt(got)
            if got.is_final or (isinstance(got, Reply) and got.http_status == HTTPStatus.ACCEPTED):
                return got
            if budget.tries >= self.limits.tries or not request.repeat.allows(got):
                return got
            if not await self.pause(got, budget, budget.tries):
                return got

    async def once(self, request: Request, budget: Budget) -> Reply | NoReply:
        """Sends a request one time, within the time that is left."""
        timeout_s = min(self.limits.timeout_s, max(budget.left_s(time.monotonic()), 0.001))
        try:
            self._token = self._token or await credential_of(self._credential)
        except Exception as error:
            # An error would say that nothing was done, and an earlier send may have been carried out.
            if not budget.is_in_doubt:
                raise
            return NoReply(reason=NO_CREDENTIAL, message=str(error))
        try:
            raw = await exchange(self._http, await self._built(request, timeout_s), timeout_s)
        except SendFailed as failed:
            return failed.no_reply()
        return read_reply(*raw)

    async def pause(self, got: Reply | NoReply, budget: Budget, count: int, operation_id: str | None = None) -> bool:
        """Pauses before the next try, and says why; False at once where the pause would end too late.

        Raises Stopped where the caller's ``on_wait`` does.
        """
        seconds = budget.pause_s(count, got.retry_after_s, time.monotonic())
        if seconds is None:
            return False
        waiting = Waiting(
            reason=got.reason,
            seconds=seconds,
            tries=budget.tries,
            request_id=got.request_id,
            operation_id=got.operation_id or operation_id,
        )
        LOG.info("payrelay waits %.2f s: %s (%s)", seconds, waiting.reason, waiting.request_id)
        if self._on_wait is not None:
            try:
                self._on_wait(waiting)
            except Stopped as stopped:
                stopped.is_open = budget.is_in_doubt
                raise
        await sleep(seconds)
        return True

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[str]]:
        """Gives the lines of a stream as they come.

        Raises PayrelayError where the service refuses it, and SendFailed where it breaks.
        """
        built = await self._built(request, self.limits.timeout_s)
        async with streaming(self._http, built) as (raw, lines):
            if raw.http_status != HTTPStatus.OK:
                got = read_reply(*raw)
                if self._is_renewable(got):
                    self._token = None
                raise error_of(got)
            yield lines

    async def _built(self, request: Request, timeout_s: float) -> httpx.Request:
        if self._token is None:
            self._token = await credential_of(self._credential)
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **request.headers}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        url = self._address + request.target
        return self._http.build_request(
            request.method, url, content=request.body, headers=headers, timeout=httpx.Timeout(timeout_s)
        )

    def _is_renewable(self, got: Reply | NoReply) -> bool:
        is_refused = isinstance(got, Reply) and got.http_status == HTTPStatus.UNAUTHORIZED
        return is_refused and not isinstance(self._credential, str)

    @staticmethod
    def _leaves_doubt(got: Reply | NoReply) -> bool:
        if isinstance(got, NoReply):
            return True
        return got.http_status in {HTTPStatus.ACCEPTED, HTTPStatus.INTERNAL_SERVER_ERROR} or got.code == "in_progress"
