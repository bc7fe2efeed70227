"""The verdict on balances: what the service says of each order's money, against the gateway's ledger.

The law, for each order when all is settled, and again when a person has decided what was left:

1. A payment that the books know is in the balance of its order, with the ledger's amount and currency. Its order is
   another one where a hold was reported for that with the same signed text. What took no money, such as a declined
   charge, is in none.
2. Given back is what went back by refunds that succeeded here. A refund whose outcome isn't known is in no figure, and
   a doubt names it.
   A refund that is stored as failed has failed in the ledger, and is in no figure any more.
3. Charged back is what a bank took, once the books have the gateway's record of it. What it notified before that is a
   doubt. Of one that nobody told of the balance has nothing: that is the only money that may be gone without a doubt,
   beside what lost commits and effects that no search showed in time did. A payment that went back, and that the record
   shows as received again, is a doubt until a look an hour later or more shows it so, too.
4. So nothing claims that more is left than the ledger has, unless a doubt says why, or one of these explains it.
5. Each doubt is explained by the life: by an operation without an outcome, a hold, a part, a loss, or news
   that didn't come.
6. Sums are of their payments, currency by currency. One payment's own balance is as its order's has it. The API tells
   the owner the same, and costs the gateway nothing.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
from tests.simulation.books import Book
from tests.simulation.clients import Ask, Told
from tests.simulation.fate import Fate
from tests.simulation.losses import Loss
from tests.simulation.network import REQUEST, Gateway
from tests.simulation.process import ACCOUNT, START_MS
from tests.simulation.true_money import TrueMoney, held_of, true_money_of

from payrelay.core.money import decimal_text
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, OrderBalance, PaymentBalance
from payrelay.core.payments.operation import OPEN_STATES, Kind, Operation, State
from payrelay.core.payments.proof import REFUND_STATUSES
from payrelay.flows.order_balance import balance_now, read_balance
from payrelay.flows.relay import Relay
from payrelay_simulator.clock import STANDING_START
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.money import text_of

AN_HOUR_MS: Final = 3_600_000
"""So much later a second look counts."""
WENT_BACK: Final = ("REFUND REQUESTED", "REFUND PROCESSING", "REFUNDED", "CHARGEBACKED")
LAPSE_TOLERANCE_S: Final = 3_600.0
"""A hold that lapses at about this moment may have lapsed for one and not yet for the other."""
READING: Final = "balances"
"""What the reads of balances are to the gateway, beside requests to the API: the judge makes them itself."""
FIGURES: Final = ("paid", "given_back", "charged_back", "left")
_ORDERS: Final = (
    "SELECT order_id FROM operations WHERE order_id IS NOT NULL UNION SELECT order_id FROM checkouts "
    "UNION SELECT order_id FROM payments_seen"
)
_KNOWN: Final = (
    "SELECT payment_id FROM operations WHERE state = 'succeeded' AND kind IN ('charge', 'capture') "
    "AND payment_id IS NOT NULL "
    "UNION SELECT payment_id FROM checkouts WHERE state = 'completed' AND payment_id IS NOT NULL "
    "UNION SELECT payment FROM installments WHERE is_paid = 1 AND payment GLOB '[0-9]*' "
    "UNION SELECT payment_id FROM payments_seen WHERE status NOT IN ('HELD', 'OTHER')"
)
_AMOUNTS_KNOWN: Final = (
    "SELECT payment_id FROM operations WHERE state = 'succeeded' AND kind IN ('charge', 'capture') "
    "AND payment_id IS NOT NULL AND amount_minor IS NOT NULL "
    "UNION SELECT payment_id FROM checkouts WHERE state = 'completed' AND kind = 'payment' AND payment_id IS NOT NULL "
    "UNION SELECT payment_id FROM payments_seen WHERE status NOT IN ('HELD', 'OTHER')"
)
_SEEN: Final = "SELECT payment_id, order_id, status, currency, amount_minor, seen_at_ms FROM payments_seen"
_CHARGEBACKS: Final = "SELECT payment_id, part_minor, noted_at_ms FROM chargebacks"
_RETURNS: Final = "SELECT payment_id, status, seen_at_ms FROM returns_seen"
_FAILED: Final = "SELECT operation_id FROM failed_refunds"
_TOLD: Final = """
    SELECT id, payment_id, order_id FROM notifications
    WHERE told = 'charged_back' AND verdict = 'genuine' AND state IN ('received', 'waiting')"""
_NOTIFIED: Final = "SELECT id FROM checkouts WHERE state = 'notified'"
_AMOUNTS_OF_HOLDS: Final = "SELECT amount_minor FROM checkouts WHERE kind = 'authorization' AND order_id = ?"
_OWNERS: Final = (
    "SELECT order_id, principal FROM operations WHERE state = 'succeeded' AND order_id IS NOT NULL "
    "AND kind IN ('charge', 'authorization')"
)
_PLANS: Final = "SELECT order_id FROM subscriptions WHERE subscription_id = ? AND order_id IS NOT NULL"


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    told: list[Told]
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


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway's record of a payment, as the books have it."""

    payment_id: str
    order_id: str
    status: str
    currency: str
    amount_minor: int
    seen_at_ms: int


@dataclass(kw_only=True, slots=True)
class Known:
    """What the books have, and what the ledger has."""

    run: Judged
    books: dict[str, Book]
    money: dict[str, TrueMoney]
    known: set[str]
    amounts: set[str]
    seen: dict[str, Seen]
    charged_back: dict[str, tuple[int | None, int]]
    returns: dict[str, dict[str, int]]
    failed: set[str]
    told: dict[str, tuple[str | None, str]]
    notified: set[str]

    @classmethod
    def of(cls, run: Judged, books: dict[str, Book]) -> "Known":
        """Reads it."""
        return cls(
            run=run,
            books=books,
            money=true_money_of(run.gateway, books.values()),
            known={str(row[0]) for row in run.auditor.execute(_KNOWN)},
            amounts={str(row[0]) for row in run.auditor.execute(_AMOUNTS_KNOWN)},
            seen={
                row[0]: Seen(**dict(zip(Seen.__struct_fields__, row, strict=True)))
                for row in run.auditor.execute(_SEEN)
            },
            charged_back={row[0]: (row[1], row[2]) for row in run.auditor.execute(_CHARGEBACKS)},
            returns=_by_payment(run.auditor.execute(_RETURNS)),
            failed={row[0] for row in run.auditor.execute(_FAILED)},
            told={row[0]: (row[1], row[2]) for row in run.auditor.execute(_TOLD)},
            notified={row[0] for row in run.auditor.execute(_NOTIFIED)},
        )

    def is_lied_about(self, payment_id: str | None) -> bool:
        """Tells whether the books have a record of a payment that the gateway made up."""
        seen, money = self.seen.get(payment_id or ""), self.money.get(payment_id or "")
        if seen is None or not self.run.gateway.lied_at_s:
            return False
        entry = None if money is None else money.entry
        return entry is None or (seen.order_id, seen.currency, seen.amount_minor) != (
            entry.order_id,
            entry.currency,
            self.run.gateway.world.state.payments[int(seen.payment_id)].amount_cents,
        )

    def counted_refunds(self, money: TrueMoney, entries: Sequence[object]) -> int:
        """Gives how much of some refunds succeeded here, as far as the books say."""
        done = [each for each in money.refunds + money.failed_refunds if each in entries]
        return sum(each.amount_cents for each in done if self.is_done(money, each.number))

    def is_done(self, money: TrueMoney, number: int) -> bool:
        """Tells whether an operation that succeeded, as the books say, made an entry of a payment."""
        book = money.made_by.get(number)
        return book is not None and book.operation.state is State.SUCCEEDED

    def unsettled(self, money: TrueMoney) -> list[int]:
        """Gives the numbers of the refunds of a payment that no operation of the books carried out, as they say."""
        refunds = money.refunds + money.failed_refunds
        return [each.number for each in refunds if not self.is_done(money, each.number)]

    def is_lost_or_hidden(self, money: TrueMoney) -> bool:
        """Tells whether refunds of a payment were lost with commits, or shown by nothing while they were looked for."""
        books = [money.made_by.get(number) for number in self.unsettled(money)]
        return any(book is None or book.operation.state not in OPEN_STATES for book in books)

    def is_counted_twice(self, money: TrueMoney) -> bool:
        """Tells whether two operations have one refund as theirs: of what a lost one did nothing says whose it was.

        One was proved by the record, which shows a refund and not how many; a person decided that the other was done.
        """
        done = [book for book in self.books.values() if book.operation.state is State.SUCCEEDED]
        claimed = Counter(entry.number for book in done for entry in book.earlier)
        return any(claimed[each.number] > 1 for each in money.refunds + money.failed_refunds)

    def has_heard_of_chargeback(self, payment_id: str) -> bool:
        """Tells whether the books have a chargeback, from the gateway's news or from its record."""
        shown_ms = self.returns.get(payment_id, {}).get("CHARGEBACKED")
        is_shown = shown_ms is not None and shown_ms > self.received_ms(payment_id)
        return payment_id in self.charged_back or is_shown

    def received_ms(self, payment_id: str) -> int:
        """Gives when the record last showed a payment as received, as far as the looks at it say."""
        before_ms = self.returns.get(payment_id, {}).get("RECEIVED", -1)
        seen = self.seen.get(payment_id)
        is_received = seen is not None and seen.status == "RECEIVED" and not self.is_in_question(payment_id)
        return max(before_ms, seen.seen_at_ms) if seen is not None and is_received else before_ms

    def is_shown_as_refunded(self, payment_id: str) -> bool:
        """Tells whether the record showed a refund since it last showed the payment as received."""
        looks, since_ms = self.returns.get(payment_id, {}), self.received_ms(payment_id)
        return any(looks.get(each, -1) > since_ms for each in REFUND_STATUSES)

    def is_in_question(self, payment_id: str) -> bool:
        """Tells whether the record shows a payment as received that went back, and no look an hour later did."""
        seen, looks = self.seen.get(payment_id), self.returns.get(payment_id, {})
        if seen is None or seen.status != "RECEIVED":
            return False
        went_back = [looks[each] for each in WENT_BACK if each in looks]
        went_back += [self.charged_back[payment_id][1]] if payment_id in self.charged_back else []
        if not any(looks.get("RECEIVED", -1) < each <= seen.seen_at_ms for each in went_back):
            return False
        return seen.seen_at_ms - looks.get("RECEIVED AGAIN", seen.seen_at_ms) < AN_HOUR_MS

    def has_shown_failure(self, payment_id: str, refund: Operation) -> bool:
        """Tells whether the record showed a refund, and two looks that it didn't stand, the later since it is known."""
        looks, seen = self.returns.get(payment_id, {}), self.seen.get(payment_id)
        if seen is None or seen.status != "RECEIVED" or "RECEIVED AGAIN" not in looks:
            return False
        if self.is_in_question(payment_id) or seen.seen_at_ms < refund.updated_at_ms:
            return False
        since_ms = max(refund.created_at_ms, looks.get("RECEIVED", -1) + 1)
        return any(since_ms <= looks.get(each, -1) < looks["RECEIVED AGAIN"] for each in REFUND_STATUSES)

    def has_failed(self, money: TrueMoney, number: int) -> bool:
        """Tells whether the books have a refund as failed."""
        book = money.made_by.get(number)
        return book is not None and book.operation.id in self.failed


def _by_payment(rows: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for payment_id, status, seen_at_ms in rows:
        found[payment_id][status] = seen_at_ms
    return dict(found)


async def judge_balances(run: Judged, relay: Relay, books: dict[str, Book], *, is_shown: bool) -> None:
    """Looks at the balance of each order, and blames; with ``is_shown`` also at what the API shows of it."""
    known = Known.of(run, books)
    merchant, reading = relay.account(ACCOUNT).merchant, REQUEST.set(READING)
    orders = {row[0] for row in run.auditor.execute(_ORDERS)}
    orders |= {entry.order_id for entry in run.gateway.world.ledger.entries()}
    balances = {order_id: await read_balance(relay, merchant, order_id) for order_id in sorted(orders)}
    for order_id, balance in balances.items():
        for fault in (*_faults_of_order(known, order_id, balance), *_faults_of_doubts(known, order_id, balance)):
            run.blame(f"the balance of {order_id} {fault}")
        run.count("balances with doubts" if balance.doubts else "balances without doubts")
        for kind in {doubt.kind for doubt in balance.doubts}:
            run.count(f"balance doubted: {kind}")
    for fault in (*_faults_of_lacking(known, balances), *_faults_of_failed(known)):
        run.blame(fault)
    for payment_id in sorted(known.money.keys() | known.seen.keys()):
        balance = await balance_now(relay, await relay.money.orders.facts_of_payment(merchant, payment_id))
        for fault in _faults_of_payment_alone(known, payment_id, balance, balances):
            run.blame(f"the balance of payment {payment_id} alone {fault}")
    REQUEST.reset(reading)
    for fault in await _faults_of_showing(run, balances) if is_shown else ():
        run.blame(fault)
    readers = {READING} | {each.request_id for each in run.told if each.ask.path.startswith("orders/")}
    if not readers.isdisjoint(run.gateway.requests.values()):
        run.blame("the balances asked the gateway for something")


def _faults_of_order(known: Known, order_id: str, balance: OrderBalance) -> Iterator[str]:
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for each in balance.payments:
        yield from _faults_of_payment(known, order_id, each)
        if each.currency is not None:
            sums[each.currency].update(_figures(each))
    for shown in balance.currencies:
        told = {name: getattr(shown, f"{name}_minor") for name in FIGURES}
        if told != {name: sums[shown.currency][name] for name in FIGURES}:
            yield f"adds up to {told}, and its payments are {balance.payments}"
    if {each.currency for each in balance.currencies} != sums.keys():
        yield f"has sums of {balance.currencies}, and its payments are {balance.payments}"
    yield from _faults_of_holds(known, order_id, balance)


def _faults_of_lacking(known: Known, balances: dict[str, OrderBalance]) -> Iterator[str]:
    """What is known is in a balance: its order's, or that of the order for which its hold was reported."""
    for payment_id, money in known.money.items():
        entry = money.entry
        if payment_id not in known.known or known.is_lied_about(payment_id):
            continue
        if (
            entry.subscription_id is not None
            and not known.run.auditor.execute(_PLANS, (str(entry.subscription_id),)).fetchone()
        ):
            continue  # of a plan that was never read nothing says the order
        having = [order_id for order_id, balance in balances.items() if balance.payment(payment_id) is not None]
        if not any(each == entry.order_id or _has_one_text(known, each, entry) for each in having):
            yield f"the balance of {entry.order_id} lacks payment {payment_id}, which is known and took {money.paid}"


def _faults_of_failed(known: Known) -> Iterator[str]:
    """What the books have as failed came in again: a refund that is made once more must not be the second one."""
    failed = {each.number for money in known.money.values() for each in money.failed_refunds}
    for each in sorted(known.failed):
        if not any(entry.number in failed for entry in known.books[each].entries):
            yield f"{known.books[each]} is stored as failed, and the ledger has it"
    for payment_id, money in known.money.items():
        for entry in money.failed_refunds:
            book = money.made_by.get(entry.number)
            is_of_all = entry.amount_cents == money.paid and known.is_done(money, entry.number)
            if book is None or not is_of_all or book.operation.id in known.failed or known.is_lied_about(payment_id):
                continue
            refunds = [each.operation for each in money.made_by.values() if each.operation.kind is Kind.REFUND]
            if any(each.id not in known.failed for each in refunds if each.id != book.operation.id):
                continue  # of two refunds nobody can tell which has failed
            if known.has_shown_failure(payment_id, book.operation):
                yield f"{book} has failed, as two looks showed, and isn't stored as failed"


def _figures(payment: PaymentBalance) -> dict[str, int]:
    return {} if payment.paid_minor is None else {name: getattr(payment, f"{name}_minor") or 0 for name in FIGURES}


def _faults_of_payment(known: Known, order_id: str | None, payment: PaymentBalance) -> Iterator[str]:
    """Each figure of one payment is the ledger's."""
    if (payment.paid_minor is None) != (payment.left_minor is None):
        yield f"knows of {payment} what was paid, or what is left, and not both"
    elif payment.paid_minor is not None and payment.paid_minor != sum(
        (payment.given_back_minor, payment.charged_back_minor, payment.left_minor or 0)
    ):
        yield f"has a payment whose figures don't add up: {payment}"
    if payment.payment_id is None:
        yield from _faults_of_unnumbered(known, payment)
        return
    money = known.money.get(payment.payment_id)
    if known.is_lied_about(payment.payment_id):
        return
    if money is None:
        if payment.paid_minor != 0:
            yield f"counts payment {payment.payment_id}, which took no money: {payment}"
        return
    entry = money.entry
    if order_id is not None and entry.order_id != order_id and not _has_one_text(known, order_id, entry):
        yield f"has payment {payment.payment_id}, which is of {entry.order_id}"
    if payment.paid_minor is None:
        if payment.payment_id in known.amounts:
            yield f"doesn't know what was paid by {payment.payment_id}: {payment}"
        return
    if payment.paid_minor == 0 and payment.payment_id not in known.known:
        # Its hold is known, and not its capture: one without an outcome is a doubt.
        maker = money.made_by.get(entry.number)
        if maker is not None and maker.operation.state in OPEN_STATES and payment.is_certain:
            yield f"has no doubt about what {maker} took: {payment}"
        return
    if (payment.paid_minor, payment.currency) != (money.paid, entry.currency):
        yield f"says that {payment.paid_minor} {payment.currency} was paid, and the ledger has {money}: {payment}"
        return
    yield from _faults_of_returns(known, money, payment)


def _has_one_text(known: Known, order_id: str, entry: LedgerEntry) -> bool:
    """Tells whether a hold of one order was reported for another one with the same signed text: no record shows it."""
    amounts = known.run.auditor.execute(_AMOUNTS_OF_HOLDS, (order_id,)).fetchall()
    entries = known.run.gateway.world.ledger.entries()
    holds = [each for each in entries if each.kind == "authorization" and each.payment_id == entry.payment_id]
    texts = {each.order_id + text_of(each.amount_cents) for each in holds}
    return any(order_id + text_of(int(amount)) in texts for (amount,) in amounts)


def _faults_of_unnumbered(known: Known, payment: PaymentBalance) -> Iterator[str]:
    """What has no payment's number is a hold, or took money by what made it."""
    if payment.paid_minor == 0:
        return
    made = [known.books[each.id] for each in payment.origins if each.id in known.books]
    if not any(book.operation.state is State.SUCCEEDED and book.entries for book in made):
        yield f"counts what took no money: {payment}"


def _faults_of_returns(known: Known, money: TrueMoney, payment: PaymentBalance) -> Iterator[str]:
    """What was given back, charged back and is left is what the ledger has, as far as the books can know it."""
    number, kinds = payment.payment_id or "", {doubt.kind for doubt in payment.doubts}
    done = known.counted_refunds(money, money.refunds)
    unheard = [each for each in money.failed_refunds if not known.has_failed(money, each.number)]
    failed = known.counted_refunds(money, unheard)
    is_by_record = bool(kinds & {DoubtKind.REFUND_NOT_MADE_HERE, DoubtKind.REFUND_MAY_BE_WHOLE})
    has_gone = payment.given_back_minor + payment.charged_back_minor > 0
    if (DoubtKind.RECEIVED_AGAIN in kinds) is not (known.is_in_question(number) and has_gone):
        yield f"has looks {known.returns.get(number)} and {known.seen.get(number)}, and doubts {kinds} of {payment}"
    most = done + failed
    makers = [each.operation for each in money.made_by.values()]
    if any(each.kind is Kind.REFUND and each.amount_minor is None for each in makers):
        # One of all that was left counts what lost ones gave back before it, too, whether they failed later or not.
        most = max(most, money.given_back + sum(each.amount_cents for each in unheard))
    if not min(done, money.paid) <= payment.given_back_minor <= min(most, money.paid) and not is_by_record:
        yield f"says that {payment.given_back_minor} was given back, and the ledger has {money}: {payment}"
    has_heard = known.has_heard_of_chargeback(number)
    least, most = (money.charged_back, money.charged_back + money.won) if has_heard else (0, 0)
    room = money.paid - payment.given_back_minor
    is_vague = is_by_record or DoubtKind.CHARGEBACK_NOT_NOTIFIED in kinds or bool(known.unsettled(money))
    is_vague |= DoubtKind.PART_NOT_SIGNED in kinds and _may_be_another_part(known)
    is_won = money.won > 0 and _is_won_in_books(known, number)
    if is_won:
        most = least
    if has_heard and not min(least, room) <= payment.charged_back_minor <= min(most, room) and not is_vague:
        yield f"says that {payment.charged_back_minor} was charged back, and the ledger has {money}: {payment}"
    if not has_heard and payment.charged_back_minor:
        yield f"says that {payment.charged_back_minor} was charged back, of which nobody told: {payment}"
    if known.is_shown_as_refunded(number) and payment.left_minor:
        yield f"says that {payment.left_minor} is left, and the record shows a refund: {payment}"
    is_excused = known.is_lost_or_hidden(money) or (money.charged_back > 0 and not has_heard)
    is_more = payment.left_minor is not None and payment.left_minor > max(0, money.left)
    if is_more and payment.is_certain and not is_excused:
        yield f"says without a doubt that {payment.left_minor} is left, and the ledger has {money}: {payment}"


def _may_be_another_part(known: Known) -> bool:
    """Tells whether somebody alters what isn't signed, as the part that a bank took back."""
    fate = known.run.fate
    return fate.pages is not None and (fate.pages.forged_share > 0 or fate.hostile is not None)


def _is_won_in_books(known: Known, payment_id: str) -> bool:
    """Tells whether the record was read since the bank had to return the money, and shows it."""
    seen = known.seen.get(payment_id)
    entries = known.run.gateway.world.ledger.entries()
    won = [each.at for each in entries if each.kind == "chargeback_reversal" and str(each.payment_id) == payment_id]
    if seen is None or known.received_ms(payment_id) != seen.seen_at_ms or not won:
        return False
    won_s = (won[-1] - STANDING_START).total_seconds() - known.run.fate.skew_s
    return (seen.seen_at_ms - START_MS) / 1000 > won_s


def _faults_of_holds(known: Known, order_id: str, balance: OrderBalance) -> Iterator[str]:
    """What is held is what the ledger holds by authorizations that succeeded here, and wasn't captured or let go."""
    now_s = known.run.gateway.loop.time()
    open_ids = {doubt.id for doubt in balance.doubts if doubt.kind is DoubtKind.OPEN_OPERATION}
    held = held_of(known.run.gateway, order_id)
    ours: dict[str, int] = {}
    for book in known.books.values():
        operation = book.operation
        is_hold = operation.kind is Kind.AUTHORIZATION and operation.state is State.SUCCEEDED
        if is_hold and operation.order_id == order_id and book.entries:
            lapses_s = (operation.created_at_ms - START_MS) / 1000 + 7 * 86_400
            if abs(lapses_s - now_s) < LAPSE_TOLERANCE_S:
                return
            ours[str(book.entries[0].payment_id)] = book.entries[0].amount_cents
    truly = sum(amount for payment_id, amount in ours.items() if payment_id in held)
    unproved = {doubt.payment_id for doubt in balance.doubts if doubt.kind is DoubtKind.UNPROVED_HOLD}
    shown = [each for each in balance.payments if not unproved & {each.payment_id} or each.is_certain]
    most = sum(each.held_minor for each in shown)
    least = sum(each.held_minor for each in shown if not _may_be_another(each))
    has_open = any(known.books[each].operation.kind in {Kind.CAPTURE, Kind.VOID} for each in open_ids)
    if not least <= truly <= most and not has_open and not unproved and not _has_unsettled_hold(known, order_id):
        yield f"says that {most} is held, and the ledger holds {truly}: {balance.payments}"


def _may_be_another(payment: PaymentBalance) -> bool:
    """Tells whether a hold, of which a person said only that it was made, may be one that is counted already."""
    return any(each.kind is DoubtKind.UNNUMBERED for each in payment.doubts)


def _has_unsettled_hold(known: Known, order_id: str) -> bool:
    """Tells whether a capture or a void of the order did something that the books don't have."""
    for entry in known.run.gateway.world.ledger.entries():
        if entry.order_id != order_id or entry.kind not in {"capture", "release"}:
            continue
        books = [book for book in known.books.values() if any(each.number == entry.number for each in book.entries)]
        if not books or books[0].operation.state is not State.SUCCEEDED:
            return True
    return False


def _faults_of_doubts(known: Known, order_id: str, balance: OrderBalance) -> Iterator[str]:
    """What has no outcome is doubted, and nothing is doubted without a reason in the life."""
    doubted = {doubt.id for doubt in balance.doubts}
    for book in known.books.values():
        operation = book.operation
        is_of = operation.order_id == order_id or balance.payment(operation.payment_id or "-") is not None
        is_open = operation.state in OPEN_STATES and operation.kind is not Kind.CANCEL
        if is_of and is_open and operation.id not in doubted:
            yield f"doesn't doubt {book}"
    for payment in balance.payments:
        told = [id_ for id_, named in known.told.items() if named in {(payment.payment_id, order_id), (None, order_id)}]
        kinds = {doubt.kind for doubt in payment.doubts}
        is_counted = any(each.figure is Figure.CHARGED_BACK for each in payment.origins)
        if payment.payment_id is not None and told and not is_counted and DoubtKind.CHARGEBACK_NOT_SHOWN not in kinds:
            yield f"doesn't doubt {payment}, of which {told} are told"
    for doubt in balance.doubts:
        if not EXPLAINED[doubt.kind](known, doubt):
            yield f"has a doubt that nothing explains: {doubt}; {balance.payments}"


def _faults_of_payment_alone(
    known: Known, payment_id: str, alone: OrderBalance, balances: dict[str, OrderBalance]
) -> Iterator[str]:
    """One payment's own balance is as its order's has it, and the ledger's where no order's has it."""
    payment = alone.payment(payment_id)
    within = [found for each in balances.values() if (found := each.payment(payment_id)) is not None]
    for each in within:
        told = None if payment is None else (payment.currency, payment.paid_minor, _figures(payment))
        if payment is None and each.paid_minor == 0:
            continue  # a hold that something else took, or lets go, is in the order's balance only
        if told != (each.currency, each.paid_minor, _figures(each)) and not known.is_lied_about(payment_id):
            yield f"is {payment}, and its order has {each}"
    if payment is not None and not within:
        yield from _faults_of_payment(known, None, payment)


async def _faults_of_showing(run: Judged, balances: dict[str, OrderBalance]) -> list[str]:
    """The API shows each order to whose it is, with the same sums and the same payments."""
    faults = []
    owners = defaultdict(set)
    for order_id, principal in run.auditor.execute(_OWNERS):
        owners[order_id].add(principal)
    for order_id, balance in balances.items():
        for principal in ("shop", "app"):
            ask = Ask(principal=principal, method="GET", path=f"orders/{order_id}", body=b"")
            heard = (await run.call(ask, 60.0)).heard
            status = None if heard is None else heard.http_status
            if status == 404 and (owners[order_id] != {principal} or run.loss is not None):
                continue
            if status == 503 and run.loss is not None:  # whose it is can't be told before the recovery has ended
                continue
            if heard is None or status != 200:
                faults.append(f"GET orders/{order_id} of {principal} was answered {heard}")
                continue
            data = msgspec.json.decode(heard.body)["data"]
            told = {
                each["currency"]: {name: decimal_text(_minor(each[name])) for name in FIGURES}
                for each in data["balances"]
            }
            ours = {
                each.currency: {name: decimal_text(getattr(each, f"{name}_minor")) for name in FIGURES}
                for each in balance.currencies
            }
            if told != ours or data["is_certain"] != balance.is_certain:
                faults.append(f"GET orders/{order_id} of {principal} shows {told}, and the balance is {balance}")
            run.count("orders shown")
    return faults


def _minor(amount: float) -> int:
    return round(amount * 100)


# What explains each kind of doubt.


def _is_open(known: Known, doubt: Doubt) -> bool:
    book = known.books.get(doubt.id)
    return book is not None and book.operation.state in OPEN_STATES


def _is_notified(known: Known, doubt: Doubt) -> bool:
    return doubt.id in known.notified


def _is_amount_unknown(known: Known, doubt: Doubt) -> bool:
    return (doubt.payment_id or "") not in known.amounts


def _is_unnumbered(known: Known, doubt: Doubt) -> bool:
    book = known.books.get(doubt.id)
    return book is None or (book.operation.state is State.SUCCEEDED and book.operation.payment_id is None)


def _is_lie(known: Known, doubt: Doubt) -> bool:
    return known.is_lied_about(doubt.payment_id) or bool(known.run.gateway.lied_at_s)


def _is_of_another_order(known: Known, doubt: Doubt) -> bool:
    """Where one order's form was edited into another's, what was held for the one is captured for the other."""
    money = known.money.get(doubt.payment_id or "")
    made = [each.operation for each in known.books.values() if each.operation.payment_id == doubt.payment_id]
    orders = {each.order_id for each in made} - {None, None if money is None else money.entry.order_id}
    return (money is not None and bool(orders)) or _is_lie(known, doubt)


def _is_part(known: Known, doubt: Doubt) -> bool:
    money = known.money.get(doubt.payment_id or "")
    return money is not None and known.counted_refunds(money, money.refunds + money.failed_refunds) > 0


def _is_made_elsewhere(known: Known, doubt: Doubt) -> bool:
    money = known.money.get(doubt.payment_id or "")
    return money is not None and bool(known.unsettled(money))


def _is_refund_unshown(known: Known, doubt: Doubt) -> bool:
    money = known.money.get(doubt.payment_id or "")
    is_shown_late = doubt.payment_id in known.run.gateway.shown_late
    return money is not None and (bool(money.failed_refunds) or is_shown_late)


def _is_more_than_parts(known: Known, doubt: Doubt) -> bool:
    """The record shows a refund of a payment of which a part was given back here, and the rest of it maybe not."""
    money = known.money.get(doubt.payment_id or "")
    if money is None or not known.is_shown_as_refunded(doubt.payment_id or ""):
        return False
    return known.counted_refunds(money, money.refunds) < money.paid and bool(money.refunds + money.failed_refunds)


def _is_received_again(known: Known, doubt: Doubt) -> bool:
    money = known.money.get(doubt.payment_id or "")
    is_true = money is not None and (bool(money.failed_refunds) or money.won > 0)
    is_true |= doubt.payment_id in known.run.gateway.shown_late
    return known.is_in_question(doubt.payment_id or "") and (is_true or bool(known.run.gateway.lied_at_s))


def _is_told(known: Known, doubt: Doubt) -> bool:
    return doubt.id in known.told


def _is_untold(known: Known, doubt: Doubt) -> bool:
    money = known.money.get(doubt.payment_id or "")
    return money is not None and money.charged_back + money.won > 0 and doubt.payment_id not in known.charged_back


def _is_unsigned(known: Known, doubt: Doubt) -> bool:
    part, _ = known.charged_back.get(doubt.payment_id or "", (None, 0))
    return part is not None


def _is_overdrawn(known: Known, doubt: Doubt) -> bool:
    money = known.money.get(doubt.payment_id or "")
    if money is None:
        return False
    returned = sum(each.amount_cents for each in money.refunds + money.failed_refunds)
    is_vague = bool(known.unsettled(money)) or known.is_counted_twice(money)
    return returned + money.charged_back + money.won > money.paid or is_vague


def _is_recovering(known: Known, doubt: Doubt) -> bool:  # noqa: ARG001, the whole life is the reason
    return known.run.loss is not None and known.run.loss.ended_s is None


def _never(known: Known, doubt: Doubt) -> bool:  # noqa: ARG001, nothing in a life is a reason
    return False


EXPLAINED: Final[dict[DoubtKind, Callable[[Known, Doubt], bool]]] = {
    DoubtKind.OPEN_OPERATION: _is_open,
    DoubtKind.OPEN_PAGE: _never,
    DoubtKind.UNPROVED_HOLD: _is_notified,
    DoubtKind.VOID_OF_PART: _never,
    DoubtKind.UNKNOWN_AMOUNT: _is_amount_unknown,
    DoubtKind.UNKNOWN_STATUS: _is_lie,
    DoubtKind.UNNUMBERED: _is_unnumbered,
    DoubtKind.UNNUMBERED_LEFT_OUT: _is_unnumbered,
    DoubtKind.DIFFERENT_AMOUNTS: _is_lie,
    DoubtKind.OTHER_CURRENCY: _is_lie,
    DoubtKind.OTHER_ORDER: _is_of_another_order,
    DoubtKind.PARTS_NOT_SHOWN: _is_part,
    DoubtKind.REFUND_NOT_MADE_HERE: _is_made_elsewhere,
    DoubtKind.REFUND_NOT_SHOWN: _is_refund_unshown,
    DoubtKind.REFUND_MAY_BE_WHOLE: _is_more_than_parts,
    DoubtKind.RECEIVED_AGAIN: _is_received_again,
    DoubtKind.CHARGEBACK_NOT_SHOWN: _is_told,
    DoubtKind.CHARGEBACK_NOT_NOTIFIED: _is_untold,
    DoubtKind.PART_NOT_SIGNED: _is_unsigned,
    DoubtKind.MORE_THAN_PAID: _is_overdrawn,
    DoubtKind.FORGED: _never,
    DoubtKind.LOST_COMMITS: _is_recovering,
    DoubtKind.TOO_MANY: _never,
}
