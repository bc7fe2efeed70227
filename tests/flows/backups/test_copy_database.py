"""What becomes of the identity of a database when it is copied, and when the old one is taken back."""

from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.databases import sqlite_url

from payrelay.backups.flows.copy_database import copied_identity
from payrelay.clock import Clock
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.errors import StoreUnusable
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.flows.database.in_place import require_in_place
from payrelay.store import open_database
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.sealing import Seal
from payrelay.store.upgrades.begin import begin_store

SEAL: Final = Seal((b"1" * 32,))
LOST: Final = LostWindow(since_ms=10, until_ms=20)
RECOVERED: Final = Incarnation(
    number=4, reason=Beginning.RECOVERED, began_at_ms=20, lost=LOST, acknowledged={"shop": 30}, operator="dana"
)


def copied_from(incarnation: Incarnation) -> Incarnation:
    """The newest incarnation in a copy."""
    identity = DatabaseIdentity(id="one", incarnations=(incarnation,), copied_to="elsewhere")
    copied = copied_identity(identity, 99, "nimal")
    assert (copied.id, copied.copied_to, copied.incarnations[0]) == ("one", "", incarnation)
    return copied.current


def test_a_recovery_goes_on_in_the_copy() -> None:
    """A request that was lost before may still come again after the move, and would be charged again."""
    copied = copied_from(RECOVERED)

    assert (copied.number, copied.reason, copied.began_at_ms, copied.operator) == (5, Beginning.COPIED, 99, "nimal")
    assert (copied.is_recovering, copied.lost, copied.acknowledged) == (True, LOST, {"shop": 30})


def test_a_recovery_that_has_ended_does_not_begin_again() -> None:
    """A copy loses nothing."""
    copied = copied_from(msgspec.structs.replace(RECOVERED, ended_recovery_at_ms=50))

    assert (copied.is_recovering, copied.lost, copied.acknowledged) == (False, None, {})


async def test_the_old_database_is_taken_back_only_by_a_recovery(tmp_path: Path) -> None:
    """What the new one did meanwhile is lost to the old one, and may come again."""
    database = await open_database(sqlite_url(tmp_path / "a.db"), clock=Clock(), owner=True)
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    await identities.change(lambda identity: msgspec.structs.replace(identity, copied_to="the new one"))

    with pytest.raises(StoreUnusable, match="copied to the new one, which took its place"):
        await require_in_place(identities)
    await begin_recovery(identities, Clock(), lost_since_ms=0, operator="nimal", note="back", number_above=7)
    await require_in_place(identities)
    assert (await identities.read()).current.number == 8
    await database.close()


async def test_a_database_that_is_taken_back_gives_no_position_of_its_copy(tmp_path: Path) -> None:
    """The copy served as incarnation 2. A reader of its events would take others for those that it knows."""
    database = await open_database(sqlite_url(tmp_path / "a.db"), clock=Clock(), owner=True)
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    copy = copied_identity(await identities.read(), 99, "nimal")
    await identities.change(lambda identity: msgspec.structs.replace(identity, copied_to="the new one"))
    begun = await begin_recovery(identities, Clock(), lost_since_ms=0, operator="nimal", note="back")

    assert begun.number > copy.current.number
    await database.close()
