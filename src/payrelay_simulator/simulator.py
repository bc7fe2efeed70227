"""The simulator as a whole: a world, the way to it, and the application that serves both."""

from functools import cached_property
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from payrelay_simulator.clock import Clock
from payrelay_simulator.control import Control, control_errors
from payrelay_simulator.keeping import Keeper, read_kept
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.pages.wire import Pages
from payrelay_simulator.records import Merchant
from payrelay_simulator.stage import Stage
from payrelay_simulator.switches import Switches
from payrelay_simulator.wire import BODY_BYTES_MAX, Wire
from payrelay_simulator.world import World

# Invented, fixed and public: whoever starts the simulator without a word gets these.
DEFAULT_MERCHANT = Merchant(
    app_id="SimulatorApp0000000000001",
    app_secret="SimulatorSecret00000000000000000000000000001",  # noqa: S106 - opens nothing but the simulator
    merchant_id="1200001",
    merchant_secret="MTIzNDU2Nzg5MDEyMzQ1Ng==",  # noqa: S106 - the same
)


class Simulator:
    """A gateway of one's own. Serve it with `serve`, or call `world.handle` without any socket.

    Without arguments it has the default merchant, a clock that runs with the machine's, and every switch at its
    default. The same seed gives the same identifiers.
    """

    def __init__(
        self,
        *merchants: Merchant,
        clock: Clock | None = None,
        switches: Switches | None = None,
        seed: int = 0,
    ) -> None:
        self.stage = Stage(
            merchants or (DEFAULT_MERCHANT,),
            Clock.running() if clock is None else clock,
            Switches() if switches is None else switches,
            seed,
        )

    @property
    def world(self) -> World:
        """The present world; a reset puts another in its place, so it is asked for each time."""
        return self.stage.world

    @property
    def merchant(self) -> Merchant:
        """The first merchant."""
        return self.world.merchants[0]

    def keep_in(self, path: Path) -> None:
        """Keep the world in a file from now on, for `go_on_from`."""
        keeper = Keeper(self.stage, path)
        keeper.keep()
        self.stage.changed = keeper.keep

    @classmethod
    def go_on_from(cls, path: Path) -> "Simulator":
        """Return a simulator with the world that was kept in a file, and keep it there. Raises KeptWorldError.

        Its clock is as far ahead of the machine's as before.
        """
        clock, parts = read_kept(path)
        simulator = cls(clock=clock)
        simulator.stage.world = World.of_parts(clock, parts)
        simulator.keep_in(path)
        return simulator

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return what really happened to the money, up to this moment of the clock."""
        self.world.elapse()
        return self.world.ledger.entries()

    @web.middleware
    async def _kept(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Keep what a page or the control API has changed before its answer; the merchant API does so by itself."""
        response = await handler(request)
        if request.method != "GET" and not request.path.startswith("/merchant/"):
            self.stage.changed()
        return response

    @cached_property
    def app(self) -> web.Application:
        """The application with both APIs. It belongs to the event loop that serves it first."""
        app = web.Application(middlewares=[self._kept, control_errors], client_max_size=BODY_BYTES_MAX)
        app.add_routes(Control(self.stage).routes())
        app.add_routes(Pages(self.stage).routes())
        app.router.add_route("*", "/merchant/v1/{rest:.*}", Wire(self.stage).handle)
        return app
