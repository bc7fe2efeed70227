"""What every flow needs: the stores, the parts of the runtime, the gateways, the clock, and the request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.calls import OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.checkouts.return_links import LinkRule
from payrelay.core.notifications.notification import Notification
from payrelay.core.outcomes import Evidence, Reading
from payrelay.core.payments.operation import Retention
from payrelay.errors import Code, Refusal
from payrelay.flows.runtime_parts import RuntimeParts
from payrelay.flows.stores import Stores
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.read_cache import CachedReading, Question

OneThing: TypeAlias = PaymentsOfOrder | OneSubscription | PaymentsOfSubscription
"""A read of what belongs to one order or one subscription."""
FoundT = TypeVar("FoundT")
FOUND: Final = "found"
"""The outcome of a read that has no error code, for the hooks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RelaySettings:
    """The settings that flows work by.

    Attributes:
        retention: how long a repeat finds its first request.
        public_url: Payrelay's address from outside, without a slash at its end; None where it isn't set.
        return_links: the apps' own links that a customer may be sent back to.
        recovery_lag_s: how long a gateway may take to show an effect, in seconds, after commits were lost.
        can_apps_charge: whether tokens of an identity provider may charge.
        apps_principal: whose such tokens are, where they may make a payment or let a customer make one; else None.
    """

    retention: Retention
    public_url: str | None = None
    return_links: tuple[LinkRule, ...] = ()
    recovery_lag_s: int = 600
    can_apps_charge: bool = False
    apps_principal: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class UnderWay:
    """What this process is doing now, beside its requests.

    Attributes:
        withdrawals: ids of operations that a background task is trying to withdraw.
        being_resolved: ids of operations that this process is resolving now, and whether each is out of turn.
        inquired_now: when an inquiry out of turn about an operation last began, by ``clock.boot_s``.
        being_worked_on: the orders (merchant and id) whose notifications this process is working on now, each with
            those that came meanwhile, by their ids.
        foreign_reads: the reads of foreign things that are under way, by merchant: what the gateway is asked in place
            of each, and how many wait for it.
    """

    withdrawals: set[str] = field(default_factory=set)
    being_resolved: dict[str, bool] = field(default_factory=dict)
    inquired_now: dict[str, float] = field(default_factory=dict)
    being_worked_on: dict[tuple[str, str], dict[str, Notification]] = field(default_factory=dict)
    foreign_reads: "dict[tuple[str, OneThing], tuple[OneThing, int]]" = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Relay(Stores, RuntimeParts):
    """The stores, parts of the runtime, gateways and settings that the flows work with; made once at start.

    Attributes:
        accounts: the configured gateway accounts by name.
        clock: tells the time.
        settings: the settings that flows work by.
        log: for what no answer can carry.
        found: what a process has made beside the relay, by its type; see ``find``.
        under_way: what this process is doing now.
    """

    accounts: Mapping[str, Gateway]
    clock: Clock
    settings: RelaySettings
    log: FilteringBoundLogger
    found: Mapping[type[object], object] = field(default_factory=dict)
    under_way: UnderWay = field(default_factory=UnderWay)

    def find(self, kind: type[FoundT]) -> FoundT:
        """Gives what this process has of a type that the relay doesn't know: the stores of a part, and such things."""
        found = self.found[kind]
        if not isinstance(found, kind):
            raise TypeError(f"{kind.__name__} is what {type(found).__name__} was made for")
        return found

    def account(self, name: str) -> Gateway:
        """Returns the account of that name; raises Refusal (not_found) where none is configured."""
        try:
            return self.accounts[name]
        except KeyError:
            raise Refusal(Code.NOT_FOUND, f"there is no gateway account called {name}") from None

    def notify_url(self, account_name: str) -> str | None:
        """Returns the address for an account's notifications; None where ``public_url`` isn't set."""
        url = self.settings.public_url
        return None if url is None else f"{url}/{account_name}/notifications"

    def account_of(self, name: str, merchant: str) -> Gateway | None:
        """Finds a configured account of a merchant: the one of that name if it is the merchant's, else any other.

        None where the merchant is not configured any more.
        """
        named = self.accounts.get(name)
        if named is not None and named.merchant == merchant:
            return named
        return next((account for account in self.accounts.values() if account.merchant == merchant), None)

    async def read(self, request: "Request", call: Read) -> CachedReading:
        """Returns the gateway's reply to a read, cached or new as the request allows; see ``read_cache``."""
        question = Question(gateway=request.gateway, call=call, ask=partial(self._call_gateway, request, call))
        return await self.read_cache.read(question, is_insisting=request.is_insisting)

    async def _call_gateway(self, request: "Request", call: Read) -> Reading:
        began_s = self.clock.boot_s()
        reading = await request.gateway.read(call, requester=request.credential.requester)
        self.hooks.call_made(request.account, call, reading.code or FOUND, self.clock.boot_s() - began_s)
        return reading


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls a flow, and on which account.

    Attributes:
        gateway: the account that the path names.
        credential: of the caller, already allowed the scope and the account.
        request_id: names this request in logs and answers.
        idempotency_key: unquoted; None where the client sent none.
        is_insisting: the client accepts only a new answer to a read, and no cached one.
        operator, reason: who acts for the caller in the console, and why; None where the caller itself does.
    """

    gateway: Gateway
    credential: Credential
    request_id: str
    idempotency_key: str | None = None
    is_insisting: bool = False
    operator: str | None = None
    reason: str | None = None

    def signed(self, evidence: Evidence) -> Evidence:
        """Adds to the evidence of an operation's first entry which operator acts, and why."""
        if self.operator is None:
            return evidence
        return msgspec.structs.replace(evidence, operator=self.operator, reason=self.reason)

    @property
    def account(self) -> str:
        """The account's configured name."""
        return self.gateway.name

    @property
    def principal(self) -> str:
        """The principal of the caller's credential."""
        return self.credential.principal
