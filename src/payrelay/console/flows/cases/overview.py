"""How it goes: what began in the last hours or days and how it ended, what is open, and the state of each part.

Everything is read from indexes, and of a bounded number of rows. Whoever may open the console may see it, but for the
words of operators: it names no customer, and an endpoint only by its host.
"""

import msgspec

from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.rules import trends
from payrelay.console.rules.trends import (
    ENDPOINTS_MAX,
    LOOKED_MAX,
    Bars,
    BudgetPart,
    TrendSpan,
    TrendWindow,
    bars_of,
    budget_parts,
    window_of,
)
from payrelay.console.runtime.budget_samples import sample_of
from payrelay.console.store.trends import TrendSum, share_of
from payrelay.core.database.incarnations import Incarnation, repeats_end_at_ms
from payrelay.core.events.delivery import Endpoint
from payrelay.core.gateways.pauses import Pause
from payrelay.core.gateways.permit_grants import BudgetSnapshot
from payrelay.core.operators.roles import Act
from payrelay.core.payments.operation import OpenCount, State
from payrelay.flows.operators.parts import Actor


class AccountSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A configured account: its budget now and before, as this process saw it, and who paused it, if somebody did."""

    name: str
    environment: str
    budget: BudgetSnapshot
    before: tuple[BudgetPart, ...]
    pause: Pause | None


class EndpointSeen(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint, by its label and its host: its whole address may have a secret in it.

    ``waiting`` is counted up to one more than ``WAITING_MAX``.
    """

    id: str
    account: str
    principal: str
    label: str | None
    host: str
    state: str
    reason: str | None
    failing_since_ms: int | None
    waiting: int


class RecoverySeen(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recovery from lost commits stands.

    Attributes:
        incarnation: the newest one of the database.
        waiting_for: the principals that haven't acknowledged.
        ends_at_ms: when it ends by itself; None where none is under way.
        behind: why the database counts as behind, in words; None where it doesn't.
    """

    incarnation: Incarnation
    waiting_for: list[str]
    ends_at_ms: int | None
    behind: str | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How it goes, at one moment.

    Attributes:
        at_ms: the moment.
        window: the time that the charts show.
        operations, checkouts, notifications, deliveries: what the charts show.
        sums: what succeeded, added up by kind and currency.
        paces: how many operations took how long, by step.
        open: what is open, by state.
        accounts, endpoints: the state of each; ``has_more_endpoints`` where not all are shown.
        recovery: after lost commits.
    """

    at_ms: int
    window: TrendWindow
    operations: Bars
    checkouts: Bars
    notifications: Bars
    deliveries: Bars
    sums: list[TrendSum]
    paces: list[tuple[str, int]]
    open: dict[State, OpenCount]
    accounts: list[AccountSeen]
    endpoints: list[EndpointSeen]
    has_more_endpoints: bool
    recovery: RecoverySeen


async def read_overview(parts: CaseParts, actor: Actor, span: TrendSpan) -> Overview:
    """Returns how it goes. Raises Refusal (forbidden), StoreError."""
    actor.require(Act.LOOK)
    relay, read = parts.relay, parts.trends
    now_ms = relay.clock.now_ms()
    window = window_of(span, now_ms)
    operations = await read.operations(window)
    listed = await relay.dispatch.endpoints.list_all()
    shown = listed[:ENDPOINTS_MAX]
    delivered = await read.deliveries([each.id for each in shown], window)
    return Overview(
        at_ms=now_ms,
        window=window,
        operations=bars_of([operations.tallies], trends.OF_OPERATIONS, window, looked_max=LOOKED_MAX),
        checkouts=bars_of([await read.checkouts(window)], trends.OF_CHECKOUTS, window, looked_max=LOOKED_MAX),
        notifications=bars_of(
            [await read.notifications(window)], trends.OF_NOTIFICATIONS, window, looked_max=LOOKED_MAX
        ),
        deliveries=bars_of(delivered.tallies.values(), trends.OF_DELIVERIES, window, looked_max=share_of(len(shown))),
        sums=operations.sums,
        paces=operations.paces,
        open=await read.open_operations(),
        accounts=await _accounts(parts, actor, window),
        endpoints=[_endpoint(each, delivered.waiting[each.id]) for each in shown],
        has_more_endpoints=len(listed) > len(shown),
        recovery=await _recovery(parts, actor),
    )


async def _accounts(parts: CaseParts, actor: Actor, window: TrendWindow) -> list[AccountSeen]:
    now_ms = parts.relay.clock.now_ms()
    pauses = {each.account: actor.without_words(each, reason="") for each in await parts.relay.pauses.list()}
    budgets = parts.budgets.now()
    return [
        AccountSeen(
            name=name,
            environment=account.environment,
            budget=budgets[name],
            before=budget_parts([*parts.budgets.of(name), sample_of(budgets[name], now_ms)], window),
            pause=pauses.get(name),
        )
        for name, account in sorted(parts.relay.accounts.items())
    ]


def _endpoint(endpoint: Endpoint, waiting: int) -> EndpointSeen:
    return EndpointSeen(
        id=endpoint.id,
        account=endpoint.account,
        principal=endpoint.principal,
        label=endpoint.label,
        host=endpoint.host,
        state=endpoint.state,
        reason=endpoint.reason,
        failing_since_ms=endpoint.failing_since_ms,
        waiting=waiting,
    )


async def _recovery(parts: CaseParts, actor: Actor) -> RecoverySeen:
    relay = parts.relay
    current = actor.without_words((await relay.database.lost_commits.identity()).current, note="")
    known = await relay.access.principals.known() if current.is_recovering else []
    return RecoverySeen(
        incarnation=current,
        waiting_for=[each for each in known if each not in current.acknowledged],
        ends_at_ms=repeats_end_at_ms(current, relay.settings.retention) if current.is_recovering else None,
        behind=relay.database.lost_commits.behind,
    )
