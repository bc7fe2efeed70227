"""Takes a report of the gateway's payments into a recovery, as an operator exported it.

It answers the held charges that it fits exactly, as a decision of that operator, and calls an operator for the payments
of the lost time that nothing here explains. It shows that a payment is there, and never that one isn't.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from payrelay.core.database.incarnations import DatabaseIdentity, ImportedReport, Incarnation, LostWindow
from payrelay.core.lost_commits.lost_effects import is_within, sendings_of
from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.payments.operation import Kind, Operation, sending_ms
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.errors import UndecidedError
from payrelay.flows.operators.held.decide_held import HeldFilter, decide_held, held_operations
from payrelay.flows.relay import Relay
from payrelay.recovery.flows.reports.judge_report import fitting_payment, known_verdict
from payrelay.recovery.rules.gateway_reports import FOR_A_PERSON, ReportedPayment, ReportVerdict
from payrelay.store.alerts import ORDER_ROW

KNOWN_PAID_FOR_MS: Final = 900_000
"""How long ago an order must have been paid for a control query: the gateway may show a newer payment late."""
REPORTS_MAX: Final = 100
"""Reports that an incarnation remembers; the oldest are forgotten, and may then be fed in as new ones."""
_GIVEN_BACK: Final = frozenset(
    {
        PaymentStatus.REFUNDED,
        PaymentStatus.REFUND_REQUESTED,
        PaymentStatus.REFUND_PROCESSING,
        PaymentStatus.CHARGED_BACK,
    }
)


class NoRecoveryError(Exception):
    """No recovery is under way into which a report could be fed."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One payment of a report, with what became of it; ``operation_id`` is the held charge that it answers."""

    reported: ReportedPayment
    verdict: ReportVerdict
    operation_id: str | None = None


class ReportImport(msgspec.Struct, frozen=True, kw_only=True):
    """What a report came to.

    Attributes:
        judged: its payments, as in the file.
        unproved: how many held operations of each kind it can't prove, and has not answered.
        is_known: whether the same file was fed into this recovery before.
    """

    judged: tuple[Judged, ...]
    unproved: dict[Kind, int]
    is_known: bool


async def import_report(
    relay: Relay, account: str, payments: Sequence[ReportedPayment], *, digest: str, operator: str
) -> ReportImport:
    """Feeds a report into the recovery, and returns what each of its payments came to.

    ``digest`` is the SHA-256 of the file. Each decision, each alert and the note of the report are stored by
    themselves; what broke off in between goes on by a repeat, and a repeat changes nothing of what is stored. Raises
    NoRecoveryError, and StoreError.
    """
    current = (await relay.database.identities.read()).current
    if current.behind or not current.is_recovering or current.lost is None:
        raise NoRecoveryError("no recovery is under way: a report changes nothing")
    of_order: dict[str, list[ReportedPayment]] = defaultdict(list)
    for each in payments:
        of_order[each.payment.order_id].append(each)
    held = await _held_charges(relay, account)
    judged: dict[str, Judged] = {}
    for order_id, reported in of_order.items():
        for found in await _judge_order(relay, account, current.lost, reported, held.get(order_id, [])):
            done = await _act_on(relay, account, found, operator=operator, digest=digest)
            judged[done.reported.payment.payment_id] = done
    in_order = tuple(judged[each.payment.payment_id] for each in payments)
    now_ms = relay.clock.now_ms()
    note = ImportedReport(
        digest=digest,
        account=account,
        at_ms=now_ms,
        operator=operator,
        verdicts=dict(sorted(Counter(each.verdict.value for each in in_order).items())),
        paid_order=_paid_order((each.payment for each in payments), now_ms),
    )
    is_known = any((each.digest, each.account) == (digest, account) for each in current.reports)
    if not is_known:
        await relay.database.identities.change(lambda identity: _noted(identity, current.number, note))
    relay.log.warning("report_imported", digest=digest, account=account, operator=operator, **note.verdicts)
    left = Counter([each.kind async for each in held_operations(relay, HeldFilter(account=account))])
    return ReportImport(judged=in_order, unproved=dict(sorted(left.items())), is_known=is_known)


async def _held_charges(relay: Relay, account: str) -> dict[str, list[Operation]]:
    held: dict[str, list[Operation]] = defaultdict(list)
    async for each in held_operations(relay, HeldFilter(account=account, kind=Kind.CHARGE)):
        if each.order_id is not None and each.merchant == relay.account(account).merchant:
            held[each.order_id].append(each)
    return held


async def _judge_order(
    relay: Relay, account: str, lost: LostWindow, reported: Sequence[ReportedPayment], held: Sequence[Operation]
) -> list[Judged]:
    """Judges the payments of one order."""
    merchant = relay.account(account).merchant
    window = sendings_of(lost, sending_ms(relay.account(account).timeout_s))
    fitting = None
    if len(held) == 1:  # of two, nobody can tell whose it is
        fitting = await fitting_payment(relay, held[0], lost, reported)
    judged = []
    for each in reported:
        verdict, operation_id = await known_verdict(relay, merchant, each.payment), None
        if verdict is None and each.payment.status in _GIVEN_BACK:
            verdict = ReportVerdict.GIVEN_BACK
        if verdict is None and fitting == each.payment.payment_id:
            verdict, operation_id = ReportVerdict.ADOPTED, held[0].id
        if verdict is None:
            verdict = ReportVerdict.NOBODYS if is_within(each.payment, window) else ReportVerdict.OUTSIDE
        judged.append(Judged(reported=each, verdict=verdict, operation_id=operation_id))
    return judged


async def _act_on(relay: Relay, account: str, judged: Judged, *, operator: str, digest: str) -> Judged:
    """Stores what follows from a verdict; gives the verdict that was stored."""
    payment = judged.reported.payment
    if judged.verdict is ReportVerdict.ADOPTED and judged.operation_id is not None:
        held = await relay.journal.get(judged.operation_id)
        reason = f"report of the gateway, sha256:{digest}, {judged.reported.place}"
        number, done = payment.payment_id, HeldDecision.DONE
        try:
            if held is not None:
                await decide_held(relay, held, done, operator=operator, reason=reason, payment_id=number)
        except UndecidedError:  # somebody else was quicker, or the payment is another operation's by now
            judged = msgspec.structs.replace(judged, verdict=ReportVerdict.NOBODYS, operation_id=None)
    if judged.verdict in FOR_A_PERSON:
        name = f"{ORDER_ROW}{relay.account(account).merchant}/{payment.order_id}"
        await relay.journal.trail.report(name, relay.clock.now_ms())
    return judged


def _paid_order(payments: Iterable[Payment], now_ms: int) -> str | None:
    """Gives the order of the newest payment that every search must show by now; None where there is none."""
    known = [
        each
        for each in payments
        if each.status is PaymentStatus.RECEIVED and each.at_ms is not None and each.at_ms <= now_ms - KNOWN_PAID_FOR_MS
    ]
    newest = max(known, key=lambda each: (each.at_ms or 0, each.payment_id), default=None)
    return None if newest is None else newest.order_id


def _noted(identity: DatabaseIdentity, number: int, note: ImportedReport) -> DatabaseIdentity:
    current: Incarnation = identity.current
    if current.number != number or any(
        (each.digest, each.account) == (note.digest, note.account) for each in current.reports
    ):
        return identity
    reports = (*current.reports, note)[-REPORTS_MAX:]
    return identity.with_current(msgspec.structs.replace(current, reports=reports))
