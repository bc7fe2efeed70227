"""Yesterday, for somebody who tries to reconcile a day: payments at the simulator, and the files that tell of them.

What happened is real: our books and the simulator's were written by requests of that day, on clocks that were set back.
The files are written from the simulator's payments, with the mistakes that files have.
"""

import shlex
import shutil
import sys
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from structlog.typing import FilteringBoundLogger

import payrelay_simulator
from payrelay.app import running
from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.calls import Charge, Refund
from payrelay.core.money import decimal_text
from payrelay.demo.parts import ACCOUNT, CONFIG, FOLDER
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.relay import Relay, Request
from payrelay.settings import Settings
from payrelay_simulator.records import Payment

BOOKS: Final = FOLDER / "books"
ZONE: Final = ZoneInfo("Asia/Colombo")
"""The gateway's, in which the days of the books end here."""
HOUR: Final = 11
CUSTOMER: Final = "D3A9" * 8
FEE_PERCENT: Final = Decimal("3.30")
PROFILE: Final = f"""\
name = "demo-portal"
movement = "payment"
date_format = "%Y-%m-%d %H:%M:%S"
columns = {{date = "Date", amount = "Amount", currency = "Currency", payment_id = "Payment", order_id = "Order", \
state = "Status", fee = "Fee", net = "Net"}}
states = {{"received" = "taken", "refunded" = "refunded"}}
fees = {{percent = "{FEE_PERCENT}"}}
"""
"""How the demo's statement is read; it has the agreed fee."""

AGREED, IN_PART, ONLY_OURS = "Books-Agreed", "Books-RefundedInPart", "Books-OnlyOurs"
OTHER_AMOUNT, OTHER_FEE, OTHER_STATE, OTHER_DAY = "Books-Amount", "Books-Fee", "Books-State", "Books-Day"
OPEN, ONLY_THEIRS = "Books-Open", "Counter-7"
AMOUNTS: Final = {
    AGREED: 125_000,
    IN_PART: 200_000,
    ONLY_OURS: 99_000,
    OTHER_AMOUNT: 120_500,
    OTHER_FEE: 300_000,
    OTHER_STATE: 78_000,
    OTHER_DAY: 45_000,
    OPEN: 64_000,
}
"""What was charged yesterday, by order, in hundredths."""
REFUNDED_MINOR: Final = 50_000


class _Earlier(Clock):
    """Shows a time of before, and runs on."""

    def __init__(self, clock: Clock, back_ms: int) -> None:
        self._clock = clock
        self._back_ms = back_ms

    def now_ms(self) -> int:
        """Gives the time so long ago."""
        return self._clock.now_ms() - self._back_ms


class Past(NamedTuple):
    """Yesterday, eleven o'clock: the clocks of the service and of the gateway."""

    day: date
    of_service: Clock
    of_gateway: payrelay_simulator.Clock
    present: Clock

    @classmethod
    def begun(cls, clock: Clock) -> "Past":
        """Sets both clocks back."""
        now = datetime.fromtimestamp(clock.now_ms() / 1000, ZONE)
        day = now.date() - timedelta(days=1)
        start = datetime(day.year, day.month, day.day, HOUR, tzinfo=ZONE)
        begun_s = time.monotonic()
        gateway = payrelay_simulator.Clock(start.astimezone(UTC), lambda: time.monotonic() - begun_s)
        return cls(day, _Earlier(clock, round((now - start).total_seconds() * 1000)), gateway, clock)

    def end(self) -> None:
        """Sets the gateway's clock to the present; the service's is not used any more."""
        present = datetime.fromtimestamp(self.present.now_ms() / 1000, UTC)
        self.of_gateway.advance((present - self.of_gateway.now()).total_seconds())


class DayToReconcile(NamedTuple):
    """The day, and what is typed to reconcile it."""

    day: date
    commands: list[str]


class _Row(NamedTuple):
    """A line of the gateway's statement."""

    payment_id: int
    order_id: str
    amount_minor: int
    status: str
    at: datetime
    fee_minor: int

    def text(self) -> str:
        """Writes the line; no field needs quotes."""
        net = decimal_text(self.amount_minor - self.fee_minor)
        at = self.at.astimezone(ZONE).strftime("%Y-%m-%d %H:%M:%S")
        amounts = f"{decimal_text(self.amount_minor)},LKR,{self.status},{at},{decimal_text(self.fee_minor)},{net}"
        return f"{self.payment_id},{self.order_id},{amounts}"


async def yesterday(
    settings: Settings,
    simulator: payrelay_simulator.Simulator,
    past: Past,
    *,
    log: FilteringBoundLogger,
    folder: Path = BOOKS,
) -> DayToReconcile:
    """Makes yesterday's payments and the files about them. Raises StoreError where the database can't be made."""
    customer = payrelay_simulator.CustomerSeed(customer_token=CUSTOMER)
    sold = payrelay_simulator.PaymentSeed(order_id=ONLY_THEIRS, amount=Decimal("1500.00"), description="Sold by link")
    lost = payrelay_simulator.Match(endpoint="charge", order_id=OPEN)
    simulator.world.faults.add_rules(payrelay_simulator.Rule(fault="cut_before", match=lost))
    payrelay_simulator.plant(simulator.world, payrelay_simulator.Seed(customers=[customer], payments=[sold]))
    async with running(settings, clock=past.of_service, log=log) as service:
        issued = await issue_key(
            service.credentials, past.of_service, KeyRequest(principal="demo", environment="sandbox")
        )
        for order_id, amount_minor in AMOUNTS.items():
            await _charge(service.relay, issued.credential, order_id, amount_minor)
        await _refund(service.relay, issued.credential, _payments(simulator)[IN_PART].payment_id)
    portal = payrelay_simulator.Caller(simulator.world)
    given_back = _payments(simulator)[OTHER_STATE].payment_id
    portal.post("payment/refund", {"payment_id": str(given_back), "description": "asked for in the portal"})
    rows = _statement(simulator)
    _write(folder, past.day, rows)
    return DayToReconcile(past.day, _commands(folder, past.day, rows))


async def _charge(relay: Relay, credential: Credential, order_id: str, amount_minor: int) -> None:
    call = Charge(
        authorize=False,
        order_id=order_id,
        items="Of yesterday",
        currency="LKR",
        amount_minor=amount_minor,
        customer_token=CUSTOMER,
    )
    await charge(relay, _asked(credential, order_id), call)


async def _refund(relay: Relay, credential: Credential, payment_id: int) -> None:
    call = Refund(payment_id=str(payment_id), description="One of two came broken", amount_minor=REFUNDED_MINOR)
    await refund(relay, _asked(credential, "refund"), call)


def _asked(credential: Credential, key: str) -> Request:
    return Request(account=ACCOUNT, credential=credential, request_id=f"req_demo_{key}", idempotency_key=f"demo-{key}")


def _payments(simulator: payrelay_simulator.Simulator) -> dict[str, Payment]:
    return {each.order_id: each for each in simulator.world.state.payments.values()}


def _statement(simulator: payrelay_simulator.Simulator) -> list[_Row]:
    """Gives the gateway's lines: one is missing, and three are not as they are at the gateway."""
    rows = []
    for order_id, payment in sorted(_payments(simulator).items(), key=lambda each: each[1].payment_id):
        row = _Row(
            payment_id=payment.payment_id,
            order_id=order_id,
            amount_minor=payment.amount_cents,
            status="REFUNDED" if payment.refunded_cents == payment.amount_cents else "RECEIVED",
            at=payment.at,
            fee_minor=_fee(payment.amount_cents),
        )
        if order_id == OTHER_AMOUNT:
            row = row._replace(amount_minor=125_000, fee_minor=_fee(125_000))
        elif order_id == OTHER_FEE:
            row = row._replace(fee_minor=row.fee_minor + 2_000)
        elif order_id == OTHER_DAY:
            row = row._replace(at=row.at - timedelta(days=1))
        if order_id != ONLY_OURS:
            rows.append(row)
    return rows


def _fee(amount_minor: int) -> int:
    return round(amount_minor * FEE_PERCENT / 100)


def _write(folder: Path, day: date, rows: list[_Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = "Payment,Order,Amount,Currency,Status,Date,Fee,Net"
    payout = decimal_text(sum(each.amount_minor - each.fee_minor for each in rows if each.status == "RECEIVED"))
    files = {
        "portal.toml": PROFILE,
        "statement.csv": "\n".join([head, *(each.text() for each in rows), ""]),
        "payouts.csv": f"payout_id,amount,currency,date\nPO-1,{payout},LKR,{day}\n",
        "bank.csv": f"date,amount,currency,reference,text,payout_id\n{day},{payout},LKR,B-1,From the gateway,PO-1\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)


def _commands(folder: Path, day: date, rows: list[_Row]) -> list[str]:
    program = "payrelay" if shutil.which("payrelay") else shlex.quote(str(Path(sys.executable).with_name("payrelay")))
    total, earlier = decimal_text(sum(each.amount_minor for each in rows)), day - timedelta(days=1)
    read = f"{program} reconcile import {folder}"
    said = f"--covers {earlier}..{day} --total {total} --count {len(rows)}"
    return [
        f"export PAYRELAY_CONFIG={CONFIG}",
        f"{read}/statement.csv --profile {folder}/portal.toml {said}",
        f"{read}/payouts.csv --profile payouts --covers {day}",
        f"{read}/bank.csv --profile bank --covers {day}",
        f"{program} reconcile run --day {day}",
    ]
