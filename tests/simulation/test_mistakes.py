"""The simulation can fail: each of these mistakes is found, by the kind of failure that it is."""

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.simulation.fate import BankFate, Fate, PageFate
from tests.simulation.hostility import ALL, SWITCHED_ON, HostileFate
from tests.simulation.losses import SHOWN_WITHIN_S, LossFate
from tests.simulation.mistakes import MISTAKES
from tests.simulation.template import Template
from tests.simulation.universe import run

pytestmark = pytest.mark.integration

SEEDS_MAX: Final = 300
SIGNS: Final = {
    "no guard": "while",
    "phones' payments are not counted": "phones paid",
    "a phone's amount is not compared": "and may pay",
    "no claim": "times",
    "sent before it is stored": "is sent while its row says",
    "second sending not journaled": "is sent while its row says",
    "answer not kept": "and later",
    "silence means not sent": "took effect",
    "what was sending was not sent": "took effect all the same",
    "another's payment is proof": "took no effect",
    "nothing found is proof": "took effect all the same",
    "places free at once": "over the gateway's budget",
    "a notification is proof": "is of another payment than was made",
    "answered before it is kept": "was answered 200 and is not there",
    "told in another commit": "in a commit without its event",
    "a signature has one reading": "(succeeded): took no effect",
    "an order is searched for without end": "was searched for",
    "nobody owns anything": "of another principal was answered",
    "a reported authorization is believed": "nobody captured its authorization",
    "a first payment is not compared": "is completed, and the ledger has nothing like it",
    "a schedule is not compared": "is on another schedule than was asked, and no operator is called",
    "an unsigned chargeback is believed": "a notification of forger",
    "a chargeback needs no record": "kept as charged back, and no",
    "a chargeback is told again": "kept as charged back is",
    "an installment is counted twice": "among its paid installments",
    "a removed customer is charged": "began after its customer had been removed",
    "nothing lost is looked for": "took effect 2 times",
    "a look needs no control": "took effect 2 times",
    "a look comes too early": "took effect 2 times",
    "an older mark is trusted": "took effect 2 times",
    "what has lost its owner is open to all": "of another principal was answered",
    "an order is whose it is by now": "was done before the loss, and answered",
    "what is open is cleared": "is no longer kept",
    "a declined charge is counted": "counts what took no money",
    "a refund of a part is forgotten": "was given back, and the ledger has",
    "what was charged back is refunded": "was sent, and 0 was left of",
    "one look is believed": "is stored as failed, and the ledger has it",
    "a balance asks the gateway": "the balances asked the gateway",
    "a repeat without its key is new": "has no key and repeats",
    "a page is opened beside a charge": "was open",
    "no second look for pages": "could be paid",
    "paid again, and nobody is told": "was paid again, and nobody was told",
    "paid again is told twice": "2 times that",
    "guards are cleared": "the operation is not as this entry, its newest, left it",
}
FALSE_NEWS: Final = PageFate(
    buyers=2,
    loss_share=0.0,
    late_share=0.3,
    copy_share=0.3,
    forged_share=1.0,
    retries=3,
    retry_s=60.0,
    has_endpoint=False,
    endpoint_fault_share=0.0,
    are_orders_shared=False,
    chargeback_share=0.0,
)
NEWS: Final = replace(FALSE_NEWS, forged_share=0.0, late_share=0.3)
TABS: Final = replace(NEWS, tabs=2)
LOST: Final = LossFate(copied_s=3.0, lost_s=60.0, begins_after_s=0.0, outside="kept", hides_s=0.0, is_ended=True)
COPIES: Final = BankFate(failed_share=0.0, rest_share=0.0, lag_s=900.0, stale_share=0.5)
BUSY: Final = {"fault_share": 0.1, "clients": 4, "pages": None, "hostile": None}
BENT: Final[dict[str, dict[str, Any]]] = {
    "phones' payments are not counted": {"hostile": HostileFate(phone_orders=1)},
    "a phone's amount is not compared": {"hostile": HostileFate(phone_orders=1)},
    "another's payment is proof": {"is_narrow": True, "fault_share": 0.5, "spares_reads": True, "clients": 4},
    "nothing found is proof": {
        "blind_s": (50.0, 864_000.0),
        "fault_share": 0.5,
        "spares_reads": True,
        "clients": 4,
        "pages": None,  # where a checkout may own a payment, no search proves anything
    },
    "a notification is proof": {"pages": FALSE_NEWS},
    "answered before it is kept": {"pages": FALSE_NEWS},
    "told in another commit": {"pages": FALSE_NEWS},
    "a signature has one reading": {"pages": NEWS, "hostile": HostileFate(customers=1)},
    "an order is searched for without end": {"pages": NEWS, "hostile": HostileFate(disguises=30)},
    "nobody owns anything": {"hostile": HostileFate(meddlers=1)},
    "a reported authorization is believed": {"pages": FALSE_NEWS},
    "a first payment is not compared": {"pages": NEWS, "hostile": HostileFate(customers=1)},
    "a schedule is not compared": {**BUSY, "clients": 1, "pages": replace(NEWS, edited_share=1.0)},
    "an unsigned chargeback is believed": {"pages": FALSE_NEWS},
    "a chargeback needs no record": {"pages": replace(FALSE_NEWS, chargeback_share=1.0)},
    "a chargeback is told again": {"pages": replace(FALSE_NEWS, chargeback_share=1.0)},
    "an installment is counted twice": {"pages": FALSE_NEWS},
    "what was charged back is refunded": {"pages": replace(TABS, chargeback_share=1.0)},
    "one look is believed": {**BUSY, "banks": COPIES},
    "a repeat without its key is new": {**BUSY, "key_loss_share": 0.6, "client_fault_share": 0.4},
    "a page is opened beside a charge": {"pages": TABS},
    "no second look for pages": {"pages": TABS, "commit_s": 0.5},
    "paid again, and nobody is told": {"pages": TABS},
    "paid again is told twice": {"pages": TABS},
    "what is open is cleared": {**BUSY, "clears": True},
    "guards are cleared": {**BUSY, "clears": True},
    "nothing lost is looked for": {**BUSY, "loss": LOST},
    "a look needs no control": {**BUSY, "loss": LOST, "blind_s": (55.0, 9_000.0)},
    "a look comes too early": {**BUSY, "loss": replace(LOST, hides_s=SHOWN_WITHIN_S)},
    "an older mark is trusted": {**BUSY, "loss": replace(LOST, outside="older")},
    "an order is whose it is by now": {**BUSY, "loss": LOST, "is_narrow": True},
    "what has lost its owner is open to all": {**BUSY, "loss": LOST, "hostile": HostileFate(meddlers=2)},
}


def test_each_hostility_is_in_all_lives_and_has_a_mistake() -> None:
    """What no mistake shows to be noticed is only noise in the lives."""
    hostile = [changes["hostile"] for changes in BENT.values() if "hostile" in changes]

    assert SWITCHED_ON == ALL
    assert all(any(getattr(each, name) for each in hostile) for name in HostileFate.__dataclass_fields__)


def bent(seed: int, mistake: str) -> Fate:
    """Gives a seed's fate, made more likely to show the mistake where that takes a rare coincidence."""
    return replace(Fate.of(seed), **BENT.get(mistake, {}))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    """A simulation that never fails proves nothing; this one fails where it must."""
    parts = MISTAKES[mistake]()
    with Template() as template:
        found = (
            failure
            for seed in range(1, SEEDS_MAX + 1)
            for failure in run(seed, template, parts, bent(seed, mistake)).failures
            if SIGNS[mistake] in failure
        )
        assert next(found, None) is not None
