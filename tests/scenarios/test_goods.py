"""Which event means goods out: every program that the docs and examples give to copy, against every event."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from standardwebhooks import Webhook
from tests.doc_blocks import blocks_of
from tests.needed import lacking
from tests.scenarios.program import free_port, surroundings
from tests.scenarios.shops import EXAMPLE, autoloader
from tests.scenarios.waiting import until
from tests.sources import ROOT

from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.events.event import TYPES
from payrelay.core.payments.operation import Kind

PAGE: Final = ROOT / "docs" / "how-to" / "server-side.md"
SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PRICE: Final = {"amount": "950.00", "currency": "LKR"}
CLUB: Final = {"amount": "1200.00", "currency": "LKR"}
HANDS_OVER: Final = {
    ("operation.succeeded", "charge"),
    ("operation.succeeded", "capture"),
    ("checkout.completed", "payment"),
}
"""The events of an order that say that its price was paid."""
PAGES: Final = ("the page in Python", "the page in Node", "the page in PHP")
SHOPS: Final = ("the shop in Python", "the shop in Node", "the shop in PHP")
NUMBERS: Final = count(1)
AT_ONCE: Final = 12

Event = dict[str, Any]


@dataclass
class Copied:
    """A program as somebody has copied it, running.

    Attributes:
        address: where it takes webhooks.
        spoken: the file that it writes what it does to.
        order: an order that it knows, at the price, of which nothing was told yet.
        forget: lets it know of no order any more.
    """

    address: str
    spoken: Path
    order: Callable[[], str]
    forget: Callable[[], None] = lambda: None

    def hear(self, event: Event, *, secret: str = SECRET) -> int:
        """Posts an event, signed, and returns the status of the answer."""
        now, body = datetime.now(UTC), json.dumps(event)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": event["id"],
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(secret).sign(event["id"], now, body),
        }
        return httpx.post(self.address, content=body, headers=headers, timeout=15).status_code

    def handed_over(self, key: str) -> int:
        """How often the goods of an order, or a membership, have gone out."""
        text = self.spoken.read_text() if self.spoken.exists() else ""
        return len(re.findall(rf"hand over {re.escape(key)}$", text, re.MULTILINE))

    def play(self, *events: Event) -> int:
        """Tells events of one order, all of which are accepted, and says how often its goods went out."""
        self.forget()
        order = self.order()
        told = [{**each, "data": {"order_id": order, **each["data"]}} for each in events]
        before = self.handed_over(order)
        assert {self.hear(each) for each in told} <= {200, 204}
        return self.handed_over(order) - before


def event(type_: str, kind: str | None = None, **data: object) -> Event:
    """An event of the order at its price, with an id of its own."""
    number = next(NUMBERS)
    members = {"kind": kind} if kind is not None else {}
    return {
        "id": f"evt_{number:032x}",
        "type": type_,
        "timestamp": "2026-11-21T10:00:00.123Z",
        "account": "gateway",
        "subject": f"operation:op_{number:032x}",
        "data": {**members, "payment_id": "320025000001", **PRICE, **data},
    }


def paid(**data: object) -> Event:
    """The event that a charge of the order has succeeded."""
    return event("operation.succeeded", "charge", **data)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The PHP client's classes."""
    return autoloader(tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="module", params=[*PAGES, *SHOPS])
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    """One of the programs, in a folder of its own; where its language is missing the test says so."""
    program: str = request.param
    folder = tmp_path_factory.mktemp("copied")
    more: dict[str, str] = {}
    if program.endswith("Node") and shutil.which("node") is None:
        lacking("node isn't installed: apt-get install nodejs")
    if program.endswith("PHP"):
        more = request.getfixturevalue("classes")
    with a_page(program, folder, more) if program in PAGES else a_shop(program, folder, more) as one:
        yield one


@contextmanager
def a_page(program: str, folder: Path, more: dict[str, str]) -> Iterator[Copied]:
    """A program of the how-to page, saved as the page says, beside the package of its language."""
    name, port, order = {
        "the page in Python": ("shop.py", "9001", "Python-1"),
        "the page in Node": ("shop.mjs", "9002", "Node-1"),
        "the page in PHP": ("shop.php", "9003", "Php-1"),
    }[program]
    (block,) = [each for each in blocks_of(PAGE) if each.file == name]
    own = str(free_port())
    (folder / name).write_text(block.text.replace(port, own))
    if name == "shop.mjs":
        package = folder / "node_modules" / "payrelay-client"
        package.mkdir(parents=True)
        (package / "package.json").symlink_to(ROOT / "clients" / "typescript" / "package.json")
        (package / "dist").symlink_to(EXAMPLE / "page" / "payrelay")
    if name == "shop.php":
        (folder / "vendor").symlink_to(Path(more["SHOP_AUTOLOAD"]).parent)
    command = {
        "shop.py": [sys.executable, name],
        "shop.mjs": ["node", name],
        "shop.php": ["php", "-S", f"127.0.0.1:{own}", name],
    }[name]
    spoken = folder / ("heard-php" if name == "shop.php" else "said")

    def forget() -> None:
        for file in folder.glob("goods-*/*"):
            file.unlink()

    with running(command, folder, {}, f"http://127.0.0.1:{own}/"):
        yield Copied(f"http://127.0.0.1:{own}/webhooks", spoken, lambda: order, forget)


@contextmanager
def a_shop(program: str, folder: Path, more: dict[str, str]) -> Iterator[Copied]:
    """A server side of the example shop; each order is another shopper's."""
    port = str(free_port())
    command = {
        "the shop in Python": [sys.executable, str(EXAMPLE / "python" / "shop.py")],
        "the shop in Node": ["node", str(EXAMPLE / "node" / "shop.mjs")],
        "the shop in PHP": ["php", "-S", f"127.0.0.1:{port}", str(EXAMPLE / "php" / "index.php")],
    }[program]
    own = {"SHOP_DATA": str(folder / "data"), "SHOP_SECRET": "a text that nobody knows", "PORT": port} | more
    with running(command, folder, own, f"http://127.0.0.1:{port}/"):
        yield Copied(f"http://127.0.0.1:{port}/webhooks", folder / "said", lambda: an_order("tea"))


def an_order(what: str) -> str:
    """An order of a shopper of its own."""
    number = next(NUMBERS)
    return f"{what}-{number:016x}-{number:012d}"


@contextmanager
def running(command: Sequence[str], folder: Path, more: dict[str, str], address: str) -> Iterator[None]:
    """Runs a program until the test is over; nothing of Payrelay's is there, since only its events are heard."""
    nobody = {"PAYRELAY": "http://127.0.0.1:9/gateway/api", "PAYRELAY_KEY": "prk_none"}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=surroundings(nobody | {"PAYRELAY_WEBHOOK_SECRET": SECRET} | more),
            stdout=said,
            stderr=said,
        )
    try:
        until(lambda: listens(address) or process.poll() is not None, "the program listens", deadline_s=30)
        assert process.poll() is None, (folder / "said").read_text()
        yield
    finally:
        process.terminate()
        process.wait(15)
    said_by = (folder / "said").read_text()
    assert not re.search(r"Traceback|PHP (?:Fatal|Warning)|TypeError", said_by), said_by


def listens(address: str) -> bool:
    """Tells whether somebody answers, whatever it is."""
    try:
        httpx.get(address, timeout=5)
    except httpx.HTTPError:
        return False
    return True


PLAYS: Final[dict[str, tuple[tuple[Event, ...], int]]] = {
    "a charge of its price": ((paid(),), 1),
    "another amount": ((paid(amount="9.50"),), 0),
    "another currency": ((paid(currency="USD"),), 0),
    "no amount": ((paid(amount=None),), 0),
    "another order": ((paid(order_id="Nobody-1"),), 0),
    "no order": ((paid(order_id=None),), 0),
    "the same event twice": ((twice := paid(), twice), 1),
    "two events of one payment": ((event("operation.succeeded", "capture"), event("checkout.completed", "payment")), 1),
    "a payment once more": ((paid(), paid(payment_id="320025000002")), 1),
    "a decline": ((event("operation.declined", "charge"),), 0),
    "a decline, and another attempt": ((event("operation.declined", "charge"), paid()), 1),
    "a decline that is heard after the other attempt": ((paid(), event("operation.declined", "charge")), 1),
    "an unknown outcome": ((event("operation.unknown", "charge"),), 0),
    "an unknown outcome that was paid": ((event("operation.unknown", "charge"), paid()), 1),
    "an unknown outcome heard late": ((paid(), event("operation.unknown", "charge")), 1),
    "a person who decides": ((event("operation.needs_attention", "charge"),), 0),
    "a person who decided": ((event("operation.needs_attention", "charge"), paid()), 1),
    "a hold": ((event("operation.succeeded", "authorization"), event("checkout.notified", "authorization")), 0),
    "a hold that was given up": (
        (event("operation.succeeded", "authorization"), event("operation.succeeded", "void")),
        0,
    ),
    "a hold that was captured": (
        (event("operation.succeeded", "authorization"), event("operation.succeeded", "capture")),
        1,
    ),
    "a part of a hold that was captured": (
        (event("operation.succeeded", "capture", amount="9.50"), event("checkout.completed", "authorization")),
        0,
    ),
    "a page that failed, was left and was paid": (
        (
            event("checkout.failed", "payment"),
            event("checkout.cancelled", "payment"),
            event("checkout.completed", "payment"),
        ),
        1,
    ),
    "a refund": ((paid(), event("operation.succeeded", "refund")), 1),
    "a refund heard first": ((event("operation.succeeded", "refund"), paid()), 0),
    "a refund that was declined": ((event("operation.refused", "refund"), paid()), 1),
    "a refund, and its payment told again": ((again := paid(), event("operation.succeeded", "refund"), again), 1),
    "a refund of a part": ((paid(), event("operation.succeeded", "refund", amount="9.50")), 1),
    "a chargeback": ((paid(), event("payment.charged_back")), 1),
    "a chargeback heard first": ((event("payment.charged_back"), paid()), 0),
    "a chargeback, and its payment told again": ((once := paid(), event("payment.charged_back"), once), 1),
    "a type of tomorrow": ((event("operation.fulfilled", "charge"), event("order.paid_again")), 0),
    "a kind of tomorrow": ((event("operation.succeeded", "transfer"), event("operation.succeeded")), 0),
}
"""What is told, and how often the goods go out."""


@pytest.mark.integration
@pytest.mark.parametrize("play", PLAYS)
def test_goods_go_out_once_and_only_where_they_were_paid(copied: Copied, play: str) -> None:
    """Whoever copies a program gives away what it gives away: after a decline, twice, or for another amount."""
    events, expected = PLAYS[play]

    assert copied.play(*events) == expected


@pytest.mark.integration
@pytest.mark.parametrize("type_", sorted(TYPES))
def test_no_other_event_hands_anything_over(copied: Copied, type_: str) -> None:
    """Every type with every kind: an event that nobody thought of is the one that gives goods away."""
    kinds = {"operation": [*Kind], "checkout": [*CheckoutKind]}.get(type_.partition(".")[0], [None])
    for kind in kinds:
        assert copied.play(event(type_, kind)) == ((type_, kind) in HANDS_OVER), kind


@pytest.mark.integration
def test_the_same_payment_told_many_times_at_once_hands_over_once(copied: Copied) -> None:
    """A delivery that took too long is sent again while the first one is still worked on."""
    copied.forget()
    order = copied.order()
    before, told = copied.handed_over(order), paid(order_id=order)
    with ThreadPoolExecutor(AT_ONCE) as senders:
        statuses = set(senders.map(copied.hear, [told] * AT_ONCE))

    assert statuses <= {200, 204}
    assert copied.handed_over(order) - before == 1


@pytest.mark.integration
def test_what_is_not_signed_hands_nothing_over(copied: Copied) -> None:
    """Else anybody could have the goods for nothing."""
    copied.forget()
    order = copied.order()
    before = copied.handed_over(order)

    assert copied.hear(paid(order_id=order), secret="whsec_" + "A" * 32) == 400
    assert copied.handed_over(order) == before


MEMBERSHIPS: Final[dict[str, tuple[tuple[Event, ...], int, bool | None]]] = {
    "begun on the page": ((event("checkout.completed", "recurring", **CLUB),), 1, True),
    "its first payment": ((event("subscription.installment_paid", payment_amount="1200.00", **CLUB),), 1, True),
    "both, and twice": (
        (
            event("subscription.installment_paid", payment_amount="1200.00", **CLUB),
            event("checkout.completed", "recurring", **CLUB),
            event("subscription.installment_paid", payment_amount="1200.00", **CLUB),
        ),
        1,
        True,
    ),
    "another amount": ((event("subscription.installment_paid", **{**CLUB, "payment_amount": "12.00"}),), 0, None),
    "a failed month": ((event("subscription.installment_failed", payment_amount="1200.00", **CLUB),), 0, None),
    "a change": ((event("subscription.updated", **CLUB),), 0, None),
    "a retry that was declined": ((event("operation.declined", "retry", **CLUB),), 0, None),
    "a page that failed": ((event("checkout.failed", "recurring", **CLUB),), 0, None),
    "ended": ((event("checkout.completed", "recurring", **CLUB), event("subscription.stopped", **CLUB)), 1, False),
    "an end heard first": (
        (event("subscription.stopped", **CLUB), event("checkout.completed", "recurring", **CLUB)),
        0,
        False,
    ),
}
"""What is told, how often the membership is begun, and whether it goes on; None: nothing was ever begun."""


@pytest.mark.integration
@pytest.mark.parametrize("copied", SHOPS, indirect=True)
@pytest.mark.parametrize("play", MEMBERSHIPS)
def test_a_membership_is_begun_by_its_payment_and_ended_for_good(copied: Copied, play: str) -> None:
    """A failed month, or any other event that names the subscription, must not let somebody in."""
    events, expected, goes_on = MEMBERSHIPS[play]
    order = an_order("club")
    plan = str(420_075_000_000 + next(NUMBERS))
    for each in events:
        own = {**each, "data": {**each["data"], "order_id": order, "subscription_id": plan}}
        assert copied.hear(own) in {200, 204}

    assert copied.handed_over(plan) == expected
    kept = json.loads((copied.spoken.parent / "data" / f"{order.split('-')[1]}.json").read_text())
    assert dict(kept["clubs"]).get(plan) == goes_on


def test_the_table_of_the_docs_names_every_event_and_what_it_means() -> None:
    """A reader who looks for an event finds it once, and the programs do what the table says."""
    text = (ROOT / "docs" / "events.md").read_text()
    table = text.partition("## Which event means goods out\n")[2].partition("\n- **")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")
    ]
    named: list[str] = []
    hands_over: set[tuple[str, str]] = set()
    first = ""
    for types, kinds, meaning in rows[2:]:
        found = re.findall(r"`([\w.]+)`", types)
        first = found[0] if found else first
        whole = [first, *(first.split(".")[0] + each for each in found[1:])] if found else []
        named += whole
        if meaning.startswith("**hand over**"):
            hands_over |= {(first, kind) for kind in re.findall(r"`(\w+)`", kinds)}

    assert (sorted(named), hands_over) == (sorted(TYPES), HANDS_OVER)
