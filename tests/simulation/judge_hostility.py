"""The verdict on hostility: nobody got at what isn't theirs, and a phone paid what it was given, once."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, Protocol

from tests.simulation.clients import Told
from tests.simulation.fate import Fate
from tests.simulation.hostility import PHONE_AMOUNT, PHONE_ORDERS, RIVAL
from tests.simulation.losses import Loss
from tests.simulation.network import Gateway

from payrelay.core.payments.order_search import OCCASIONS_MAX, PAUSES_MS
from payrelay_simulator.money import cents_of

SEARCHES_MAX: Final = OCCASIONS_MAX * len(PAUSES_MS)
"""Of one order, while the pauses between them still grow: each occasion begins the schedule anew once, and takes all
its slots at most. What is asked for an operation doesn't count. Its inquiries have a schedule and a budget of their
own. One that shows nothing of a payment that is known to exist is made again every quarter of an hour for a week."""
LONGEST_PAUSE_S: Final = max(PAUSES_MS) / 1000
"""The pause that repeats, once all others are over."""


LOOKS_MAX: Final = 2
"""Searches for one request after commits were lost, which wait for no slot: for its own order, and for another one that
shows whether the gateway's search answers at all."""


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    told: list[Told]
    loss: Loss | None

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...


def judge_hostility(run: Judged) -> None:
    """Looks at all of it, and blames."""
    hostile = run.fate.hostile
    if hostile is None:
        return
    faults: list[str] = []
    if hostile.meddlers:
        faults += _faults_of_owning(run)
    if hostile.phone_orders:
        faults += _faults_of_phones(run)
    if hostile.disguises:
        faults += _faults_of_searching(run)
    for fault in faults:
        run.blame(fault)


def _faults_of_owning(run: Judged) -> Iterator[str]:
    """A principal that has nothing of its own gets at nothing, by whatever id it was told."""
    for told in run.told:
        if told.ask.principal != RIVAL or told.heard is None:
            continue
        run.count(f"meddled: {told.heard.http_status}")
        if told.heard.http_status in {200, 202}:
            yield f"{told.ask.method} {told.ask.path} of another principal was answered {told.heard.http_status}"


def _faults_of_phones(run: Judged) -> Iterator[str]:
    """An order that phones may pay once is paid once at most, and with the amount that they were given."""
    wanted_cents = cents_of(PHONE_AMOUNT)
    paid = defaultdict(list)
    for entry in run.gateway.world.ledger.entries():
        if entry.kind == "charge" and entry.order_id in PHONE_ORDERS:
            paid[entry.order_id].append(entry.amount_cents)
    for order_id, amounts in paid.items():
        run.count(f"paid by phones: {len(amounts)}")
        if len(amounts) > 1:
            yield f"phones paid {order_id} {len(amounts)} times: {amounts}"
        if set(amounts) != {wanted_cents}:
            yield f"phones paid {order_id} with {amounts}, and may pay {wanted_cents}"


def _faults_of_searching(run: Judged) -> Iterator[str]:
    """However many pieces of news name an order, it is searched for as often as its own schedule says."""
    records = run.gateway.world.calls.records()
    lost_s = float("inf") if run.loss is None else run.loss.lost_s
    repeats = {each.request_id for each in run.told if each.at_s >= lost_s and each.ask.body}
    searches, looks = Counter[str | None](), Counter[str]()
    for record in records:
        if record.endpoint != "search" or record.number in run.gateway.inquiry_numbers:
            continue
        request_id = run.gateway.requests.get(record.number)
        if request_id in repeats:
            looks[request_id] += 1
        else:
            searches[record.order_id] += 1
    searches_max = SEARCHES_MAX + run.gateway.loop.time() / LONGEST_PAUSE_S
    for order_id, number in searches.items():
        if number > searches_max:
            yield f"{order_id} was searched for {number} times"
    for request_id, number in looks.items():
        if number > LOOKS_MAX:
            yield f"{request_id} had {number} searches made"
