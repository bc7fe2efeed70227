"""The database that every run begins with: migrated, with the clients' keys in it."""

import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.digests import digests_of
from tests.simulation import storage
from tests.simulation.fate import chance
from tests.simulation.hostility import RIVAL
from tests.simulation.loop import SimulatedLoop, new_loop
from tests.simulation.process import SEAL, SimulatedClock
from tests.simulation.witness import watch_over

from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.store.access.credentials import Credentials
from payrelay.store.meta import chain_key
from payrelay.store.upgrades.begin import begin_store

PRINCIPALS: Final = ("shop", "app", RIVAL)


class Template:
    """Made once a process of the machine's, copied for each run; removed at the end of the context.

    Attributes:
        folder: where the runs' databases are put too.
        path: the database.
        keys: of the clients, by principal.
        spare: another key of the first principal, which nobody needs: its id and its text.
    """

    def __init__(self) -> None:
        self.folder: Path = storage.new_folder()
        self.path = self.folder / "template.db"
        self.keys: dict[str, str] = {}
        self.spare = "", ""

    def __enter__(self) -> Self:
        loop = new_loop(None)
        loop.run(self._make(loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder)

    async def _make(self, loop: SimulatedLoop) -> None:
        clock = SimulatedClock(loop)
        disk = storage.Disk(random=chance(0, "template"), longest_s=0.0)
        engine = storage.open_engine(self.path, loop, clock, disk)
        await begin_store(engine, SEAL, clock)
        secret = (await chain_key(engine, SEAL)).secret
        for principal in (PRINCIPALS[0], *PRINCIPALS):
            issued = await issue_key(
                Credentials(engine, digests_of(engine, secret)),
                clock,
                KeyRequest(principal=principal, environment="sandbox"),
            )
            if not self.spare[0]:
                self.spare = issued.credential.id, issued.key
                continue
            self.keys[principal] = issued.key
        await engine.close()
        watch_over(self.path)
