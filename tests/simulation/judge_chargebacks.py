"""The verdict on chargebacks: what the banks took back and the gateway told, against what is kept and shown of it."""

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import msgspec
from tests.simulation.clients import Ask, Told
from tests.simulation.fate import Fate
from tests.simulation.judge_pages import LAST_TRIES_S, WAITS_FOR_S, taken_back_by_banks
from tests.simulation.losses import Loss
from tests.simulation.network import Gateway
from tests.simulation.postman import CHARGED_BACK, Posted
from tests.simulation.process import START_MS

from payrelay_simulator.clock import STANDING_START
from payrelay_simulator.ledger import LedgerEntry

SHOWN: Final = "CHARGEBACKED"
_KEPT: Final = "SELECT payment_id, order_id, operation_id, amount_minor, currency, principal FROM chargebacks"
_TOLD: Final = "SELECT subject, principal FROM seen_events WHERE type = 'payment.charged_back'"
_INBOX: Final = "SELECT digest, state, why FROM notifications WHERE told = 'charged_back'"
_OPERATIONS: Final = (
    "SELECT id, payment_id, principal, "
    "(SELECT min(at_ms) FROM history WHERE operation_id = id AND state = 'succeeded') "
    "FROM operations WHERE state = 'succeeded' AND payment_id IS NOT NULL "
    "AND kind IN ('charge', 'authorization', 'capture')"
)
_CHECKOUTS: Final = (
    "SELECT payment_id, subscription_id, principal, updated_at_ms FROM checkouts "
    "WHERE state = 'completed' AND (payment_id IS NOT NULL OR subscription_id IS NOT NULL)"
)
_EVIDENCE: Final = (
    "SELECT history.operation_id, notifications.id FROM notifications, history "
    "WHERE told = 'charged_back' AND instr(evidence, notifications.id) > 0"
)


class Kept(NamedTuple):
    """A chargeback as our books have it."""

    payment_id: str
    order_id: str
    operation_id: str | None
    amount_minor: int | None
    currency: str
    principal: str


@dataclass(kw_only=True, slots=True)
class Known:
    """Since when a payment is known as one of ours, whose it is, and which operations made it."""

    since_s: float = float("inf")
    principals: set[str] = field(default_factory=set)
    operations: set[str] = field(default_factory=set)


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    auditor: sqlite3.Connection
    loss: Loss | None

    async def call(self, ask: Ask, patience_s: float) -> Told:
        """Asks as a client does."""
        ...

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...


async def judge_chargebacks(run: Judged, posted: list[Posted]) -> None:
    """Looks at all of it, and blames."""
    news = [each for each in posted if each.fields["status_code"] == CHARGED_BACK]
    kept = {row[0]: Kept(*row) for row in run.auditor.execute(_KEPT)}
    faults = [*_faults_of_kept(run, kept), *await _faults_of_showing(run, kept)]
    if news:
        faults += [*_faults_of_silence(run, kept, news), *_faults_of_operations(run)]
    for fault in faults:
        run.blame(fault)
    for each in kept.values():
        run.count(f"chargeback of {'no operation' if each.operation_id is None else 'an operation'}")


def _faults_of_kept(run: Judged, kept: dict[str, Kept]) -> Iterator[str]:
    """What is kept was taken back by a bank and is shown as that, and is told once, to whom the payment is."""
    if kept and run.fate.switches.chargeback_record != SHOWN:
        yield f"{sorted(kept)} are kept as charged back, and no record shows it"
    taken, payments = taken_back_by_banks(run.gateway), run.gateway.world.state.payments
    for each in kept.values():
        entry = taken.get(int(each.payment_id))
        if entry is None:
            yield f"{each} is kept as charged back, and no bank took it back"
            continue
        amount_cents = payments[int(each.payment_id)].amount_cents
        is_as_made = (each.order_id, each.amount_minor, each.currency) == (
            entry.order_id,
            amount_cents,
            entry.currency,
        )
        # What is kept is what the gateway's record showed, true or not.
        if not is_as_made and not run.gateway.lied_at_s:
            yield f"{each} is kept otherwise than it was: {entry}"
    told = Counter(run.auditor.execute(_TOLD))
    if told != Counter((f"payment:{each.payment_id}", each.principal) for each in kept.values()):
        yield f"kept as charged back is {sorted(kept.values())}, and told was {sorted(told.items())}"


async def _faults_of_showing(run: Judged, kept: dict[str, Kept]) -> list[str]:
    """Each is shown once, and at the operation that made its payment, where one did."""
    faults = []
    for each in kept.values():
        if each.operation_id is None:
            continue
        ask = Ask(principal=each.principal, method="GET", path=f"operations/{each.operation_id}", body=b"")
        heard = (await run.call(ask, 60.0)).heard
        data = {} if heard is None else msgspec.json.decode(heard.body)["data"]
        shown = [back["payment_id"] for back in data.get("chargebacks", ())]
        if shown != [each.payment_id] or data["payment_id"] != each.payment_id:
            faults.append(f"{each} is shown as {shown} at an operation that made {data.get('payment_id')}")
    return faults


def _faults_of_silence(run: Judged, kept: dict[str, Kept], news: list[Posted]) -> Iterator[str]:
    """What the gateway told of a payment of ours, and we took in, is kept and shown to whom the payment is.

    Where no record shows it, an operator is called.
    """
    is_shown = run.fate.switches.chargeback_record == SHOWN
    inbox = {digest: why if state == "applied" else state for digest, state, why in run.auditor.execute(_INBOX)}
    taken, known, heard = taken_back_by_banks(run.gateway), _known(run), set[bytes]()
    for each in news:
        # A copy of what was heard before waits no longer than the first.
        if each.origin != "gateway" or each.http_status != 200 or each.body in heard:
            continue
        heard.add(each.body)
        payment_id = each.fields["payment_id"]
        its, owner = kept.get(payment_id), known.get(payment_id)
        if owner is None or not _was_in_time(run, each, owner.since_s, taken[int(payment_id)]):
            continue
        why = inbox.get(hashlib.sha256(each.body).hexdigest())
        if run.loss is not None and _is_excused_by(run.loss, each, why, owner.since_s):
            continue
        if not is_shown:
            if why != "needs_attention":
                yield f"the chargeback of {payment_id}, told at {each.at_s}, is {why}, and no record shows it"
        elif its is None or why != "chargeback_kept":
            yield f"the chargeback of {payment_id}, told at {each.at_s}, is {why}, and its payment is known: {owner}"
        elif its.principal not in owner.principals or (owner.operations and its.operation_id not in owner.operations):
            yield f"{its} is not kept with what made its payment: {owner}"


def _is_excused_by(loss: Loss, posted: Posted, why: str | None, since_s: float) -> bool:
    """Tells whether the row that took it in is lost, or an operator was called to it while its payment was lost."""
    if why is None:
        return loss.is_told_of(posted.heard_at_s)
    return why == "needs_attention" and loss.lost_s <= posted.at_s < since_s


def _known(run: Judged) -> dict[str, Known]:
    known: dict[str, Known] = defaultdict(Known)
    for operation_id, payment_id, principal, since_ms in run.auditor.execute(_OPERATIONS):
        _add(known[payment_id], principal, since_ms)
        known[payment_id].operations.add(operation_id)
    plans = run.gateway.world.state.subscriptions
    for payment_id, subscription_id, principal, since_ms in run.auditor.execute(_CHECKOUTS):
        plan = None if subscription_id is None else plans.get(int(subscription_id))
        for each in {payment_id, *(str(number) for number in (() if plan is None else plan.payment_ids))} - {None}:
            _add(known[each], principal, since_ms)
    return dict(known)


def _add(known: Known, principal: str, since_ms: int) -> None:
    known.since_s = min(known.since_s, (since_ms - START_MS) / 1000)
    known.principals.add(principal)


def _was_in_time(run: Judged, posted: Posted, since_s: float, entry: LedgerEntry) -> bool:
    """Tells whether its payment was known, shown and all calm for long enough while the notification waited.

    What was won meanwhile is shown no more.
    """
    blind_from_s, blind_until_s = run.fate.blind_s
    until_s = posted.at_s + WAITS_FOR_S
    visible_at = run.gateway.world.state.payments[entry.payment_id or 0].visible_at
    visible_s = 0.0 if visible_at is None else (visible_at - STANDING_START).total_seconds() - run.fate.skew_s
    from_s = max(posted.at_s, since_s, visible_s, run.fate.chaos_s)
    if blind_from_s < until_s:
        from_s = max(from_s, blind_until_s)
    won = (
        (back.at - STANDING_START).total_seconds() - run.fate.skew_s
        for back in run.gateway.world.ledger.entries(after=entry.number)
        if back.kind == "chargeback_reversal" and back.payment_id == entry.payment_id
    )
    return from_s + LAST_TRIES_S < min((until_s, *won))


def _faults_of_operations(run: Judged) -> Iterator[str]:
    """No operation comes to another state because of a chargeback."""
    for operation_id, notification_id in run.auditor.execute(_EVIDENCE):
        yield f"{operation_id} was changed because of the chargeback {notification_id}"
