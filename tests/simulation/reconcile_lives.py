"""Reconciles lives of the program: the gateway's ledger as files, with planted differences, against our books.

What is done is done by the flows that an accountant's commands call. Every planted difference must be found, and no
other one but those that a life brings about by itself:

1. The payments that were there before the life began, which nobody here made.
2. What has moved money, and has no outcome in our books, since a person has to decide.
3. A retry of an installment: its reply names no payment, so nobody can tell which one of the file it is.

Where a refund of a payment failed later, or somebody gave the rest back in the gateway's portal, equal refunds can't be
told apart. There it counts that a difference is found where the two sides differ in what was given back.

Lives with the gateway's pages, in which others pay what nobody here made, and lives in which commits are lost, have a
ledger that our books needn't equal: they are left out.

    make reconcile-lives SEEDS=1000
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from typing import Final, TypeAlias

from rich.console import Console
from tests.simulation.fate import Fate
from tests.simulation.loop import Endless, wait_seconds
from tests.simulation.process import ACCOUNT, Parts
from tests.simulation.template import Template
from tests.simulation.universe import Universe

from payrelay.core.payments.operation import OPEN_STATES, Kind, Operation, OperationFilter, State
from payrelay.flows.operators.parts import Actor
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.import_statement import Completeness, FileToImport, import_file, say_complete
from payrelay.reconciliation.flows.run_day import run_day
from payrelay.reconciliation.flows.scope import BooksScope, scope_of
from payrelay.reconciliation.rules.entries import LineState, Movement, days_between
from payrelay.reconciliation.rules.files.profiles import Columns, Profile
from payrelay.reconciliation.rules.verdicts import Aspect, BooksFinding, BooksVerdict
from payrelay_simulator.clock import GATEWAY_ZONE
from payrelay_simulator.ledger import LedgerEntry

Verdict: TypeAlias = tuple[BooksVerdict, tuple[Aspect, ...]]

CHUNK: Final = 20
PLANTED_MAX: Final = 6
OPERATIONS_MAX: Final = 1_000
BEHIND: Final = timedelta(days=20)
"""Days behind the last line that the files are complete for: a refund may take two weeks to show."""
PAYS: Final = frozenset({Kind.CHARGE, Kind.CAPTURE})
"""The operations whose amount our books know; that of a retry is the subscription's, which the gateway has."""
ANN: Final = Actor("ann")
MOVEMENTS: Final = {
    "charge": "payment",
    "capture": "payment",
    "retry": "payment",
    "installment": "payment",
    "refund": "refund",
    "chargeback": "chargeback",
}
"""What moves money, as the file calls it; nothing else is in it."""
PROFILE: Final = Profile(
    name="ledger",
    movement=Movement.PAYMENT,
    columns=Columns(
        date="date",
        amount="amount",
        currency="currency",
        payment_id="payment",
        order_id="order",
        reference="reference",
        movement="movement",
        state="state",
    ),
    states={"taken": LineState.TAKEN, "failed": LineState.NOT_TAKEN},
    movements={"payment": Movement.PAYMENT, "refund": Movement.REFUND, "chargeback": Movement.CHARGEBACK},
)
_BACK: Final = "given back of "
_HEAD: Final = "movement,payment,reference,order,amount,currency,state,date\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the file."""

    movement: str
    payment: str
    reference: str
    order: str
    cents: int
    currency: str
    state: str
    day: date
    time: str

    def __str__(self) -> str:
        amount = f"{self.cents // 100}.{self.cents % 100:02}"
        members = (self.movement, self.payment, self.reference, self.order, amount, self.currency, self.state)
        return f"{','.join(members)},{self.day} {self.time}\n"

    def but(self, **members: object) -> "Row":
        """Gives it with other members."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return Row(**(own | members))


@dataclass(kw_only=True, slots=True)
class Reconciled:
    """What the comparison of lives came to."""

    lives: int = 0
    failures: list[str] = field(default_factory=list)
    planted: Counter[str] = field(default_factory=Counter)
    agreed: int = 0

    def add(self, other: "Reconciled") -> None:
        """Adds what other lives came to."""
        self.lives += other.lives
        self.failures += other.failures
        self.planted += other.planted
        self.agreed += other.agreed


def plants(row: Row, number: int) -> dict[str, tuple[list[Row], str, Verdict]]:
    """Gives, by name, what can be made of a payment's line, whose difference that is, and how it has to be called."""
    different = BooksVerdict.DIFFERENT
    foreign = row.but(payment=f"9{row.payment[1:]}", order=f"foreign {number}")
    return {
        "only ours": ([], row.payment, (BooksVerdict.ONLY_OURS, ())),
        "only theirs": ([row, foreign], foreign.payment, (BooksVerdict.ONLY_THEIRS, ())),
        "amount": ([row.but(cents=row.cents + 1)], row.payment, (different, (Aspect.AMOUNT,))),
        "state": ([row.but(state="failed")], row.payment, (different, (Aspect.STATE,))),
        "word": ([row.but(state="settled")], row.payment, (different, (Aspect.STATE,))),
        "foreign word": (
            [row, foreign.but(state="settled")],
            foreign.payment,
            (BooksVerdict.ONLY_THEIRS, ()),
        ),
        "day": ([row.but(day=row.day + timedelta(days=3))], row.payment, (different, (Aspect.DAY,))),
        "order": ([row.but(order=f"other {number}")], row.payment, (different, (Aspect.ORDER,))),
        "statements": (
            [row, row.but(cents=row.cents + 1, state="failed")],
            row.payment,
            (different, (Aspect.STATEMENTS,)),
        ),
    }


class ReconciledUniverse(Universe):
    """A life whose books are compared with the gateway's ledger before it is judged."""

    def __init__(self, fate: Fate, template: Template) -> None:
        super().__init__(fate, template, Parts())
        self.reconciled = Reconciled(lives=1)
        self.foreign: set[str] = set()
        self.before = 0

    async def _settle(self) -> None:
        await super()._settle()
        await wait_seconds(5 * 86_400.0)
        relay = next(process.relay for process in self.processes if process is not None)
        if relay is None:
            raise RuntimeError("no process is up at the end")
        await self._reconcile(relay)

    async def _reconcile(self, relay: Relay) -> None:
        random, scope = self.fate.chance("planted differences"), scope_of(relay, ACCOUNT)
        entries = self.gateway.world.ledger.entries()
        has_failed = {each.refund_id for each in entries if each.kind == "refund_reversal"}
        rows = [_row(each, has_failed) for each in entries if each.kind in MOVEMENTS]
        wanted: dict[str, Verdict] = dict.fromkeys(self.foreign, (BooksVerdict.ONLY_THEIRS, ()))
        operations = await relay.journal.list(OperationFilter(), before=None, limit=OPERATIONS_MAX)
        uncertain = self._uncertain(operations)
        left_out = {f"{_BACK}{each}" for each in uncertain}
        wanted |= {name: verdict for name, verdict in self._own(operations).items() if name not in left_out}
        rows, planted = self._planted(operations, rows, random)
        wanted |= planted
        days = sorted({row.day for row in rows} | {scope.zone.day(each.created_at_ms) for each in operations})
        if not days:
            return
        yesterday = scope.zone.day(relay.clock.now_ms()) - timedelta(days=1)
        last = min(days[-1] + BEHIND, yesterday)
        await self._feed(relay, scope, rows, random, Completeness(first=days[0], last=last))
        found: Counter[tuple[str, Verdict]] = Counter()
        told: set[str | None] = set()
        for day in days_between(days[0], days[-1] + timedelta(days=1)):
            report = await run_day(relay, scope, day)
            certain = [each for each in report.listed if returned_of(each) not in uncertain]
            found.update((name_of(each), (each.verdict, each.aspects)) for each in certain if each.is_difference)
            told |= {returned_of(each) for each in report.listed}
            self.reconciled.agreed += report.count(BooksVerdict.AGREED)
        for difference in sorted((Counter(wanted.items()) - found).elements()):
            self.blame(f"books: {difference} was planted, and not found")
        for difference in sorted((found - Counter(wanted.items())).elements()):
            self.blame(f"books: {difference} was found, and not planted")
        await self._blame_uncertain(relay, operations, uncertain, told)

    def _plant(self) -> None:
        super()._plant()
        # What the gateway had before the life began, nobody here made.
        entries = self.gateway.world.ledger.entries()
        self.foreign = {str(each.payment_id) for each in entries if each.kind in MOVEMENTS}
        self.before = len(entries)

    def _planted(
        self, operations: Sequence[Operation], rows: Sequence[Row], random: Random
    ) -> tuple[list[Row], dict[str, Verdict]]:
        """Makes differences of some payments that are known here and were never given back."""
        known = {each.payment_id for each in operations if each.state is State.SUCCEEDED and each.kind in PAYS}
        returned = {row.payment for row in rows if row.movement != "payment"}
        whole = [row for row in rows if row.payment in known - returned - self.foreign]
        chosen = random.sample(whole, min(len(whole), random.randint(0, PLANTED_MAX)))
        made, wanted = [row for row in rows if row not in chosen], {}
        for number, row in enumerate(chosen):
            name, (instead, identity, verdict) = random.choice(sorted(plants(row, number).items()))
            self.reconciled.planted[name] += 1
            made += instead
            wanted[identity] = verdict
        return made, wanted

    def _own(self, operations: Sequence[Operation]) -> dict[str, Verdict]:
        """Gives what a life brings about by itself: by what each operation's calls have really done."""
        wanted: dict[str, Verdict] = {}
        for each in operations:
            for entry in self._moved_by(each):
                name = f"{'' if MOVEMENTS[entry.kind] == 'payment' else _BACK}{entry.payment_id}"
                if each.state in OPEN_STATES:
                    wanted[name] = (BooksVerdict.DIFFERENT, (Aspect.STATE,))
                elif each.kind is Kind.RETRY and each.payment_id is None:
                    wanted[name] = (BooksVerdict.ONLY_THEIRS, ())
        return wanted

    def _uncertain(self, operations: Sequence[Operation]) -> set[str]:
        """Gives the payments of which a refund failed later, or was made in the portal."""
        entries = self.gateway.world.ledger.entries(after=self.before)
        ours = {moved.number for each in operations for moved in self._moved_by(each)}
        return {
            str(each.payment_id)
            for each in entries
            if each.kind == "refund_reversal" or (each.kind == "refund" and each.number not in ours)
        }

    async def _blame_uncertain(
        self, relay: Relay, operations: Sequence[Operation], uncertain: AbstractSet[str], told: AbstractSet[str | None]
    ) -> None:
        """Blames a payment of which nothing is found though our books have another sum than what was given back."""
        for payment_id in sorted(uncertain - told):
            refunds = [each for each in operations if each.kind is Kind.REFUND and each.payment_id == payment_id]
            done = [each for each in refunds if each.state is State.SUCCEEDED]
            standing = [each for each in done if not await relay.journal.has_failed(each)]
            payment = self.gateway.world.state.payments[int(payment_id)]
            paid = payment.amount_cents
            here = min(paid, sum(paid if each.amount_minor is None else each.amount_minor for each in standing))
            if here != payment.refunded_cents:
                self.blame(f"books: {payment_id} has {payment.refunded_cents} given back, {here} here, and all agrees")

    def _moved_by(self, operation: Operation) -> Iterator[LedgerEntry]:
        for arrival in self.gateway.arrivals:
            if arrival.operation_id == operation.id:
                yield from (entry for entry in arrival.entries if entry.kind in MOVEMENTS)

    async def _feed(self, relay: Relay, scope: BooksScope, rows: list[Row], random: Random, said: Completeness) -> None:
        """Feeds the rows as several files in any order, with some rows in two of them."""
        random.shuffle(rows)
        at = random.randint(0, len(rows))
        again = random.sample(rows, len(rows) // 3)
        imported = []
        for name, part in (("a.csv", [*again, *rows[:at]]), ("b.csv", rows[at:])):
            text = [_HEAD, *map(str, part)]
            file = FileToImport(name=name, digest=f"{name} {self.fate.seed}", profile=PROFILE, opened=text.__iter__)
            imported.append(await import_file(relay, scope, file, ANN))
        await say_complete(relay, scope, imported, said, ANN)


def _row(entry: LedgerEntry, has_failed: AbstractSet[int | None]) -> Row:
    at = entry.at.astimezone(GATEWAY_ZONE)
    return Row(
        movement=MOVEMENTS[entry.kind],
        payment=str(entry.payment_id),
        reference=f"{entry.kind} {entry.number}",
        order=entry.order_id,
        cents=entry.amount_cents,
        currency=entry.currency,
        state="failed" if entry.kind == "refund" and entry.refund_id in has_failed else "taken",
        day=at.date(),
        time=f"{at:%H:%M:%S}",
    )


def name_of(found: BooksFinding) -> str:
    """Gives what a difference is of: two open refunds of one payment and amount can't be told apart in a file."""
    if found.movement is Movement.PAYMENT or found.ours is None:
        return found.identity
    return f"{_BACK}{found.ours.payment_id}"


def returned_of(found: BooksFinding) -> str | None:
    """Gives the payment that a finding's refund or chargeback is of; None where it is a payment itself."""
    if found.movement is Movement.PAYMENT:
        return None
    return found.ours.payment_id if found.ours is not None else found.theirs.payment_id if found.theirs else None


def is_comparable(fate: Fate) -> bool:
    """Tells whether our books have to equal the ledger at the end of a life."""
    return fate.pages is None and fate.loss is None


def reconcile(seed: int, template: Template) -> Reconciled:
    """Lives through one seed, and compares its books."""
    universe = ReconciledUniverse(Fate.of(seed), template)
    try:
        universe.loop.run(universe.live())
    except Endless as error:
        universe.blame(str(error))
    except Exception as error:  # noqa: BLE001  one life that can't be told to its end must not end the campaign
        universe.blame(f"{type(error).__name__}: {error}")
    finally:
        universe.auditor.close()
    command = f"make reconcile-lives SEEDS=1 FROM={seed}"
    universe.reconciled.failures += [f"{command}: {each}" for each in universe.failures]
    return universe.reconciled


def reconcile_many(seeds: Sequence[int]) -> Reconciled:
    """Lives through seeds one after the other, and compares the books of each that has to agree."""
    made = Reconciled()
    with Template() as template:
        for seed in seeds:
            if is_comparable(Fate.of(seed)):
                made.add(reconcile(seed, template))
    return made


def main() -> int:
    """Reads the arguments, runs, prints; 1 where anything failed."""
    parser = argparse.ArgumentParser(description="Reconcile lives of the program with planted differences.")
    parser.add_argument("--seeds", type=int, default=1_000, help="lives that are compared")
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    console, began_s, made, seeds = Console(), time.monotonic(), Reconciled(), list[int]()
    seed = given.first
    while len(seeds) < given.seeds:
        if is_comparable(Fate.of(seed)):
            seeds.append(seed)
        seed += 1
    with ProcessPoolExecutor(max_workers=given.jobs) as pool:
        futures = [pool.submit(reconcile_many, seeds[start : start + CHUNK]) for start in range(0, len(seeds), CHUNK)]
        for future in as_completed(futures):
            part = future.result()
            made.add(part)
            for told in part.failures:
                console.print(told, markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{made.lives} lives in {time.monotonic() - began_s:.0f} s: {made.agreed} agreed,"
        f" {made.planted.total()} differences planted, {len(made.failures)} failures"
    )
    console.print(dict(made.planted))
    return 1 if made.failures or not made.planted else 0


if __name__ == "__main__":
    sys.exit(main())
