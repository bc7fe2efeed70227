"""What a report of the gateway's payments does in a recovery: it answers, calls an operator, and proves no absence."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.flows.losing import url
from tests.flows.world import CHARGE, CREDENTIAL, START_MS, World, asked
from tests.identities import give_identity
from tests.relays import SEAL

from payrelay.clock import Clock
from payrelay.core.calls import Charge
from payrelay.core.database.incarnations import Beginning, Incarnation, LostWindow
from payrelay.core.moments import rfc3339
from payrelay.core.payments.idempotency import claim_of, fingerprint_of
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.proof import Control
from payrelay.flows.operations.intent import Intent
from payrelay.flows.payments.charge import charge
from payrelay.flows.resolution.control_query import control_query
from payrelay.recovery.flows.hold import hold
from payrelay.recovery.flows.reports.import_report import NoRecoveryError, ReportImport, import_report
from payrelay.recovery.rules.gateway_reports import ReportVerdict, read_report
from payrelay.runtime.database.lost_commits import IDENTITY_KEPT_MS, LostCommits
from payrelay.store.opening import open_database

__all__ = ["url"]

HOUR_MS: Final = 3_600_000
SINCE_MS: Final = START_MS
UNTIL_MS: Final = START_MS + HOUR_MS
NOW_MS: Final = UNTIL_MS + HOUR_MS
PAID_MS: Final = START_MS + HOUR_MS // 2
HEADER: Final = "order_id,payment_id,amount,currency,status,date"
DIGEST: Final = "0f" * 32


class Books:
    """A relay whose recovery is under way, over either database."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.relay = world.relay

    async def begin(self) -> None:
        """Begins a recovery that has the lost window of these tests."""
        await give_identity(self.world.database, SEAL)
        lost = LostWindow(since_ms=SINCE_MS, until_ms=UNTIL_MS)
        began = Incarnation(number=2, reason=Beginning.RECOVERED, began_at_ms=UNTIL_MS, lost=lost)
        await self.relay.database.identities.change(
            lambda identity: msgspec.structs.replace(identity, incarnations=(*identity.incarnations, began))
        )
        self.world.clock.passed_ms += NOW_MS - START_MS + IDENTITY_KEPT_MS
        reading = LostCommits(self.relay.database.identities.read, self.world.clock, self.relay.log)
        self.relay = self.world.relay = replace(self.relay, database=replace(self.relay.database, lost_commits=reading))

    async def hold(self, call: Charge = CHARGE, key: str = "k-1", kind: Kind = Kind.CHARGE) -> Operation:
        """Holds a charge, as where no order is known to be paid."""
        intent = Intent(
            kind=kind,
            call=call,
            subject=f"order/{call.order_id}",
            order_id=call.order_id,
            amount_minor=call.amount_minor,
            currency=call.currency,
        )
        request = asked(key)
        fingerprint = fingerprint_of(request.account, call)
        await hold(self.relay, request, intent, fingerprint, claim_of(key, fingerprint, is_unkeyed_claimed=True))
        return (await self.world.operations())[-1]

    async def feed(self, *lines: str, digest: str = DIGEST) -> ReportImport:
        """Feeds a report in, as Ann."""
        content = "\n".join((HEADER, *lines)).encode()
        return await import_report(self.relay, "gateway", read_report(content, "UTC"), digest=digest, operator="ann")


def line(
    payment_id: str = "320025000001",
    *,
    order_id: str = CHARGE.order_id,
    amount: str = "1000.00",
    status: str = "RECEIVED",
    at_ms: int = PAID_MS,
) -> str:
    """Gives a line of a report: the payment of the charge, but for what is named."""
    return f"{order_id},{payment_id},{amount},{CHARGE.currency},{status},{rfc3339(at_ms)}"


def verdicts(imported: ReportImport) -> list[ReportVerdict]:
    """Gives what the payments came to, as in the file."""
    return [each.verdict for each in imported.judged]


@pytest.fixture
async def books(url: str, tmp_path: Path) -> AsyncIterator[Books]:
    """Gives a relay in recovery, with one key for the account."""
    world = World(await open_database(url, clock=Clock(), owner=True), tmp_path / "payrelay.db")
    books = Books(world)
    await world.relay.access.credentials.add(CREDENTIAL)
    await books.begin()
    yield books
    await world.relay.background.finish(0)
    await world.database.close()


async def test_a_held_charge_gets_the_payment_that_fits_it(books: Books) -> None:
    """The client is answered with it, nothing is sent, and the history names the operator and the file."""
    held = await books.hold()
    imported = await books.feed(line())
    told = await charge(books.relay, asked(), CHARGE)
    stored = await books.world.operation()

    assert (verdicts(imported), imported.unproved) == ([ReportVerdict.ADOPTED], {})
    assert (stored.id, stored.state, stored.payment_id) == (held.id, State.SUCCEEDED, "320025000001")
    assert (told.http_status, books.world.account.sent) == (200, [])
    evidence = (await books.relay.journal.history(held.id))[-1].evidence
    assert (evidence.operator, evidence.reason) == ("ann", f"report of the gateway, sha256:{DIGEST}, line 2")


async def test_the_same_report_twice_changes_nothing(books: Books) -> None:
    """An operator who isn't sure whether the command came to its end gives it again."""
    await books.hold()
    await books.feed(line(), line("320025000002", order_id="B-1"))
    before = (await books.relay.database.identities.read(), await books.world.operations())
    again = await books.feed(line(), line("320025000002", order_id="B-1"))

    assert verdicts(again) == [ReportVerdict.KNOWN, ReportVerdict.NOBODYS]
    assert again.is_known
    assert (await books.relay.database.identities.read(), await books.world.operations()) == before


async def test_it_is_remembered_with_its_operator(books: Books) -> None:
    """`recover status` shows what was believed, and on whose word."""
    await books.feed(line(), line("320025000002", order_id="B-1"))
    [note] = (await books.relay.database.identities.read()).current.reports

    assert (note.digest, note.account, note.operator, note.verdicts) == (DIGEST, "gateway", "ann", {"nobodys": 2})


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([line(amount="999.00")], [ReportVerdict.NOBODYS]),
        ([line(at_ms=SINCE_MS - HOUR_MS)], [ReportVerdict.OUTSIDE]),
        ([line(status="REFUNDED")], [ReportVerdict.GIVEN_BACK]),
        ([line(), line("320025000002")], [ReportVerdict.NOBODYS, ReportVerdict.NOBODYS]),
        ([line(order_id="B-1")], [ReportVerdict.NOBODYS]),
    ],
)
async def test_what_does_not_fit_exactly_answers_no_charge(
    books: Books, lines: list[str], expected: list[ReportVerdict]
) -> None:
    """It is somebody's payment, and perhaps not this client's: the charge stays held for a person."""
    held = await books.hold()
    imported = await books.feed(*lines)

    assert verdicts(imported) == expected
    assert (await books.world.operation()).state is State.HELD
    assert imported.unproved == {Kind.CHARGE: 1}
    name = f"orders/{held.merchant}/{lines[0].split(',')[0]}"
    assert await books.relay.journal.trail.has_reported(name) is (ReportVerdict.NOBODYS in expected)


async def test_another_principals_payment_answers_no_charge(books: Books) -> None:
    """Two principals had keys in the lost time, and the report doesn't say which of them was paid."""
    other = msgspec.structs.replace(CREDENTIAL, id="000000000002", principal="another shop")
    await books.relay.access.credentials.add(other)
    await books.hold()
    assert verdicts(await books.feed(line())) == [ReportVerdict.NOBODYS]


async def test_a_report_proves_no_authorization(books: Books) -> None:
    """Its client needs the token for a capture, and no report has that."""
    await books.hold(msgspec.structs.replace(CHARGE, authorize=True), kind=Kind.AUTHORIZATION)
    imported = await books.feed(line())
    assert (verdicts(imported), imported.unproved) == ([ReportVerdict.NOBODYS], {Kind.AUTHORIZATION: 1})


async def test_a_payment_that_is_known_otherwise_is_told(books: Books) -> None:
    """Either the report or the database is wrong about money."""
    await books.hold()
    await books.feed(line())
    imported = await books.feed(line(amount="999.00"), digest="1f" * 32)
    assert verdicts(imported) == [ReportVerdict.CONTRADICTS]


async def test_an_order_that_was_reported_is_asked_for_beside_a_look(books: Books) -> None:
    """Where the restored database knows no paid order, every charge would wait for a person."""
    asked_for = []

    async def inquire(call: object) -> object:
        asked_for.append(call)
        return await books.world.account.inquire(call, until_s=0)  # type: ignore[arg-type]

    merchant = books.world.account.merchant
    assert await control_query(books.relay, merchant, "A-1", inquire) is Control.NONE_KNOWN  # type: ignore[arg-type]
    await books.feed(line(order_id="B-1"))
    books.world.clock.passed_ms += IDENTITY_KEPT_MS
    assert await control_query(books.relay, merchant, "B-1", inquire) is Control.NONE_KNOWN  # type: ignore[arg-type]
    assert asked_for == []
    # The gateway doesn't show it: the report may be wrong, and nothing that a search doesn't find is taken for absent.
    assert await control_query(books.relay, merchant, "A-1", inquire) is Control.NOT_FOUND  # type: ignore[arg-type]


async def test_without_a_recovery_it_changes_nothing(world: World) -> None:
    """A report of a healthy database would call operators for every payment that the shop takes elsewhere."""
    await give_identity(world.database, SEAL)
    with pytest.raises(NoRecoveryError):
        await Books(world).feed(line())
    assert (await world.relay.database.identities.read()).current.reports == ()
