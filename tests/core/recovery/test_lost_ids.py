"""Which unknown ids may have been lost with commits: those of the lost window, for as long as the recovery lasts."""

from typing import Final

import msgspec
import pytest

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.database.lost_ids import CLOCKS_MS, may_be_lost, may_lack_a_change, tries_lost_since_ms

SINCE_MS: Final = 1_700_000_000_000
UNTIL_MS: Final = SINCE_MS + 60_000
FIRST: Final = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
RECOVERING: Final = Incarnation(
    number=2,
    reason=Beginning.RECOVERED,
    began_at_ms=UNTIL_MS,
    lost=LostWindow(since_ms=SINCE_MS, until_ms=UNTIL_MS),
)
ENDED: Final = msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=UNTIL_MS + 9)


def made_at(at_ms: int) -> str:
    """Gives an id of that time."""
    return f"chk_{at_ms:012x}{'0' * 20}"


@pytest.mark.parametrize(
    ("at_ms", "is_in_doubt"),
    [
        (SINCE_MS - CLOCKS_MS - 1, False),
        (SINCE_MS - CLOCKS_MS, True),
        (UNTIL_MS, True),
        (UNTIL_MS + CLOCKS_MS, True),
        (UNTIL_MS + CLOCKS_MS + 1, False),
    ],
)
def test_an_id_of_the_lost_window_is_in_doubt_with_what_clocks_may_differ(at_ms: int, *, is_in_doubt: bool) -> None:
    """A final no about a payment that is only lost sends the customer to pay once more."""
    assert may_be_lost(made_at(at_ms), RECOVERING, is_behind=False) is is_in_doubt


@pytest.mark.parametrize("incarnation", [FIRST, ENDED])
def test_without_a_recovery_no_id_is_in_doubt(incarnation: Incarnation) -> None:
    """A client that asks for what was never there must hear so, and not try for ever."""
    assert not may_be_lost(made_at(SINCE_MS), incarnation, is_behind=False)
    assert not may_be_lost(None, incarnation, is_behind=False)


def test_a_name_without_a_time_is_in_doubt_throughout_the_recovery() -> None:
    """An Idempotency-Key tells no time: the app that asks for it may have been charged."""
    assert may_be_lost(None, RECOVERING, is_behind=False)


def test_while_the_database_is_behind_every_id_is_in_doubt() -> None:
    """Nobody knows yet since when commits are lost."""
    assert may_be_lost(made_at(1), FIRST, is_behind=True)


def test_what_the_service_never_gives_out_is_never_in_doubt() -> None:
    """A mistyped id is wrong also in a recovery."""
    assert not may_be_lost("chk_1", RECOVERING, is_behind=True)


def test_a_notification_counts_as_of_a_recovery_from_the_loss_until_its_end() -> None:
    """One from before has its order here; one that comes after the end is about nothing that was lost."""

    def may_have_lost(newest: Incarnation, at_ms: int) -> bool:
        return DatabaseIdentity(id="1", incarnations=(FIRST, newest)).may_have_lost(at_ms)

    assert not may_have_lost(RECOVERING, SINCE_MS - 1)
    assert may_have_lost(RECOVERING, SINCE_MS)
    assert may_have_lost(ENDED, UNTIL_MS + 9)
    assert not may_have_lost(ENDED, UNTIL_MS + 10)
    assert not DatabaseIdentity(id="1", incarnations=(FIRST,)).has_lost_commits
    assert DatabaseIdentity(id="1", incarnations=(FIRST, ENDED)).has_lost_commits


@pytest.mark.parametrize(
    ("made_ms", "incarnation", "is_behind", "may_lack"),
    [
        (1, RECOVERING, False, True),
        (UNTIL_MS + CLOCKS_MS, RECOVERING, False, True),
        (UNTIL_MS + CLOCKS_MS + 1, RECOVERING, False, False),
        (1, FIRST, False, False),
        (1, ENDED, False, False),
        (UNTIL_MS + CLOCKS_MS + 1, RECOVERING, True, True),
    ],
)
def test_what_was_made_before_the_loss_may_lack_its_last_change(
    made_ms: int, incarnation: Incarnation, *, is_behind: bool, may_lack: bool
) -> None:
    """A final no about what a thing became would be false; what was made later stands as it is."""
    assert may_lack_a_change(made_ms, incarnation, is_behind=is_behind) is may_lack


@pytest.mark.parametrize(
    ("incarnation", "is_behind", "since_ms"),
    [
        (FIRST, False, None),
        (RECOVERING, False, SINCE_MS - CLOCKS_MS),
        (msgspec.structs.replace(RECOVERING, acknowledged={"app": UNTIL_MS}), False, SINCE_MS - CLOCKS_MS),
        (msgspec.structs.replace(RECOVERING, acknowledged={"shop": UNTIL_MS}), False, None),
        (ENDED, False, None),
        (ENDED, True, 0),
    ],
)
def test_tries_may_be_lost_until_their_principal_acknowledges_or_the_recovery_ends(
    incarnation: Incarnation, *, is_behind: bool, since_ms: int | None
) -> None:
    """Only what can have been charged in lost commits is spared a final no; later everything is told as it is."""
    assert tries_lost_since_ms("shop", incarnation, is_behind=is_behind) == since_ms
