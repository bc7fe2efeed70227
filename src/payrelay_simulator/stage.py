"""What a running simulator consists of: the world, and the means to disturb the way to it."""

from collections.abc import Callable

from payrelay_simulator.clock import Clock
from payrelay_simulator.hangs import Hangs
from payrelay_simulator.listener import Listener
from payrelay_simulator.records import Merchant
from payrelay_simulator.switches import Switches
from payrelay_simulator.world import World


def _keep_nowhere() -> None:
    """Let a world be forgotten at the end, as most are."""


class Stage:
    """The present world with its listener and waiting calls. A reset puts a new world in the old one's place."""

    def __init__(self, merchants: tuple[Merchant, ...], clock: Clock, switches: Switches, seed: int) -> None:
        self._merchants = merchants
        self._clock = clock
        self._switches = switches
        self._seed = seed
        self.listener = Listener()
        self.hangs = Hangs()
        self.world = self._new_world()
        # Is called when the world has changed, before anybody is told of it.
        self.changed: Callable[[], None] = _keep_nowhere

    def _new_world(self) -> World:
        return World(self._merchants, self._clock, self._switches, seed=self._seed)

    def reset(self) -> None:
        """Forget everything that happened, faults and switches included; the clock goes on, it never goes back."""
        self.hangs.release()
        self.listener.reset_next(0)
        self.world = self._new_world()
        self.changed()
