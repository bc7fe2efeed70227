"""What the relay does about lost commits where the part that recovers from them isn't installed: nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec
import pytest
from tests.flows.recovery.lost_world import RECOVERING, LostWorld
from tests.flows.recovery.test_behind import fall_behind
from tests.flows.world import CHARGE

from payrelay.errors import Code, Refusal, StoreUnusable
from payrelay.flows.requests.recovery_gate import WITHOUT_RECOVERY, Recovery, require_recoverable
from payrelay.recovery.flows.clear_request import clear

ENDED: Final = msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=RECOVERING.began_at_ms + 1)
LOSSES: Final[dict[str, tuple[Callable[[LostWorld], None], bool]]] = {
    "nothing was lost": (lambda _: None, True),
    "the database is behind": (lambda lost: fall_behind(lost.world), False),
    "a recovery is under way": (lambda lost: lost.lose(), False),
    "a recovery has ended": (lambda lost: lost.lose(incarnation=ENDED), True),
}
"""What became of the database, and whether a charge may be sent then."""


@pytest.fixture
def alone(lost: LostWorld) -> LostWorld:
    """Gives a world that has no part for a recovery."""
    lost.world.relay = replace(lost.world.relay, found={**lost.world.relay.found, Recovery: WITHOUT_RECOVERY})
    return lost


def test_with_the_part_its_own_rules_are_asked(lost: LostWorld) -> None:
    """Else every test of a recovery would show what happens without one."""
    assert lost.world.relay.find(Recovery).clear is clear


@pytest.mark.parametrize("loss", LOSSES)
async def test_nothing_is_sent_from_a_database_that_lost_commits(alone: LostWorld, loss: str) -> None:
    """An earlier try of the request may be among them, and nobody here can look for it."""
    lose, is_sent = LOSSES[loss]
    lose(alone)
    if is_sent:
        assert (await alone.make(CHARGE)).http_status == 200
    else:
        with pytest.raises(Refusal) as refused:
            await alone.make(CHARGE)
        assert refused.value.code is Code.UNAVAILABLE
    assert alone.account.effects == ([CHARGE] if is_sent else [])


@pytest.mark.parametrize("loss", LOSSES)
async def test_no_service_starts_on_a_database_that_lost_commits(alone: LostWorld, loss: str) -> None:
    """Whoever starts it learns at once what is missing, and not from the first customer who can't pay."""
    lose, is_served = LOSSES[loss]
    lose(alone)
    if is_served:
        await require_recoverable(alone.world.relay)
    else:
        with pytest.raises(StoreUnusable, match=r"payrelay\.recovery"):
            await require_recoverable(alone.world.relay)


async def test_with_the_part_a_service_starts_on_it(lost: LostWorld) -> None:
    """It answers what is known, and lets an operator begin the recovery beside it."""
    fall_behind(lost.world)
    await require_recoverable(lost.world.relay)
