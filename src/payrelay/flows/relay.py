"""What every story needs: the rooms below, the clock, and who is asking."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.calls import Read
from payrelay.core.checkouts.return_links import LinkRule
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import Retention
from payrelay.errors import Code, Refusal
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.alert_channels import AlertChannels
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.held_responses import Waiters
from payrelay.runtime.hooks import Watch
from payrelay.runtime.ids import new_id
from payrelay.runtime.paused_accounts import PausedAccounts
from payrelay.runtime.read_cache import CachedReading, Question, Readings
from payrelay.store.access.client_tokens import ClientTokens
from payrelay.store.access.signing_keys import SigningKeys
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.inbox import Inbox
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.resolution import Settling
from payrelay.store.subscriptions import Subscriptions

T = TypeVar("T")

FOUND: Final = "found"
"""What a read came to that has no error code."""


class Background:
    """The work that goes on when nobody waits for it any more.

    A client's disconnect cancels the wait, never the work; a clean stop waits for what is here.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_leaving = False

    @property
    def is_leaving(self) -> bool:
        """True when the program is about to end, and nobody may begin an effect or wait for one any more."""
        return self._is_leaving

    @property
    def under_way(self) -> int:
        """How many pieces of work have begun and not ended."""
        return len(self._tasks)

    def leave(self) -> None:
        """Says that the program is about to end; what is here goes on until ``finish``."""
        self._is_leaving = True

    def start(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Begins a piece of work, and holds on to it until it has ended."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, within_s: float) -> int:
        """Waits until all of it has ended, but no longer than ``within_s``; gives how many have not, and ends them.

        What is ended here left its row in ``sending``, which the next start finds.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        while self._tasks and (left_s := until_s - loop.time()) > 0:  # work that ends may leave some that it began
            await asyncio.wait(set(self._tasks), timeout=left_s)
        unfinished = set(self._tasks)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return len(unfinished)


@dataclass(frozen=True, kw_only=True, slots=True)
class Relay:
    """The rooms and settings that the stories work with; made once at start.

    Attributes:
        journal: where operations are kept.
        settling: what settling asks the store.
        inbox: where notifications are kept.
        customers: where stored customers are kept.
        checkouts: where hosted payments are kept.
        subscriptions: where it is kept how subscriptions stand.
        client_tokens, signing_keys: where client tokens are kept, and what they are signed with.
        accounts: the configured gateway accounts by name.
        paused: knows the accounts that take no new effects.
        readings: shares and keeps what is read.
        dispatch: what events are published, sent and followed with.
        alarm: what alerts are given with.
        clock: tells the time.
        retention: how long a repeat finds its first request.
        log: for what no answer can carry.
        public_url: our address from outside, without a slash at its end; None where it isn't set.
        return_links: the apps' own links that a customer may be sent back to.
        new_id: makes an id from its prefix and the time in milliseconds.
        pause: waits a number of seconds; only for repeating an unstored outcome.
        watch: told of what happens.
        waiters: requests whose answers are held back until their operations are settled.
        background: work that outlives its request.
        withdrawals: ids of operations that the background is trying to withdraw.
        being_settled: ids of operations that this process is looking for now, and whether somebody asked for that.
        nudged: when operations were last looked for because somebody asked, by ``clock.boot_s``.
        being_worked_on: ids of notifications that this process is working on now.
    """

    journal: Journal
    settling: Settling
    inbox: Inbox
    customers: Customers
    checkouts: Checkouts
    subscriptions: Subscriptions
    client_tokens: ClientTokens
    signing_keys: SigningKeys
    accounts: Mapping[str, Gateway]
    paused: PausedAccounts
    readings: Readings
    dispatch: Dispatch
    alarm: AlertChannels
    clock: Clock
    retention: Retention
    log: FilteringBoundLogger
    public_url: str | None = None
    return_links: tuple[LinkRule, ...] = ()
    new_id: Callable[[str, int], str] = new_id
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    watch: Watch = field(default_factory=Watch)
    waiters: Waiters = field(default_factory=Waiters)
    background: Background = field(default_factory=Background)
    withdrawals: set[str] = field(default_factory=set)
    being_settled: dict[str, bool] = field(default_factory=dict)
    nudged: dict[str, float] = field(default_factory=dict)
    being_worked_on: set[str] = field(default_factory=set)

    def account(self, name: str) -> Gateway:
        """Gives the account of that name; raises Refusal (not_found) where none is configured."""
        try:
            return self.accounts[name]
        except KeyError:
            raise Refusal(Code.NOT_FOUND, f"there is no gateway account called {name}") from None

    def notify_url(self, account_name: str) -> str | None:
        """Gives the address at which an account's notifications are taken; None where ours isn't set."""
        return None if self.public_url is None else f"{self.public_url}/{account_name}/notifications"

    def account_of(self, name: str, merchant: str) -> Gateway | None:
        """Finds the account of a merchant, under whatever name it is configured now; the given one comes first.

        None where the merchant is not configured any more.
        """
        named = self.accounts.get(name)
        if named is not None and named.merchant == merchant:
            return named
        return next((account for account in self.accounts.values() if account.merchant == merchant), None)

    async def read(self, request: "Request", call: Read) -> CachedReading:
        """Tells what the gateway says to a read, as new as is asked for; see ``readings``.

        Raises Refusal (not_found) where no account of that name is configured.
        """
        account = self.account(request.account)
        ask = partial(self._ask, account, request.account, call)
        question = Question(gateway=account, call=call, ask=ask)
        return await self.readings.read(question, is_insisting=request.is_insisting)

    async def _ask(self, account: Gateway, name: str, call: Read) -> Reading:
        began_s = self.clock.boot_s()
        reading = await account.read(call)
        self.watch.call_made(name, call, reading.code or FOUND, self.clock.boot_s() - began_s)
        return reading


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for a story, on which account.

    Attributes:
        account: the configured name in the path.
        credential: of the caller, already allowed the scope and the account.
        request_id: names this request in logs and answers.
        idempotency_key: unquoted; None where the client sent none.
        is_insisting: takes no answer to a read but a new one.
    """

    account: str
    credential: Credential
    request_id: str
    idempotency_key: str | None = None
    is_insisting: bool = False

    @property
    def principal(self) -> str:
        """The named key that acts."""
        return self.credential.principal
