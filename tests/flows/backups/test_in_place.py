"""What becomes of a database that is read in other tables than those in which its incarnation began."""

from pathlib import Path

import msgspec
import pytest
import structlog

from payrelay.clock import Clock
from payrelay.core.database.incarnations import MOVED
from payrelay.errors import Code, Refusal, StoreUnusable
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.flows.database.in_place import require_in_place
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store import open_database
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.sealing import Seal
from payrelay.store.upgrades.begin import begin_store

SEAL = Seal((b"1" * 32,))
LOG = structlog.wrap_logger(None, processors=[], wrapper_class=structlog.make_filtering_bound_logger("critical"))


async def test_a_restored_copy_starts_and_charges_only_after_its_recovery_has_begun(tmp_path: Path) -> None:
    """An operator forgets at night what a page says. The copy lacks charges that clients will repeat."""
    database = await open_database(f"sqlite:///{tmp_path}/a.db", clock=Clock(), owner=True)
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    await identities.change(lambda each: each.with_current(msgspec.structs.replace(each.current, place="elsewhere")))
    lost_commits = LostCommits(identities.read, Clock(), LOG, change=identities.change)

    with pytest.raises(StoreUnusable, match=r"a copy that was restored.* run payrelay recover"):
        await require_in_place(identities)
    with pytest.raises(Refusal) as refused:
        await lost_commits.require_effects_allowed()
    assert (refused.value.code, lost_commits.behind) == (Code.UNAVAILABLE, MOVED)
    await lost_commits.store_behind()

    await begin_recovery(identities, Clock(), lost_since_ms=0, operator="nimal", note="restored")
    await require_in_place(identities)
    await lost_commits.refresh()
    assert (await lost_commits.require_effects_allowed(), lost_commits.behind) == (
        (await identities.read()).current,
        None,
    )
    await database.close()
