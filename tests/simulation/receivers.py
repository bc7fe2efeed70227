"""Who gets events sent: they answer, fail, or are cut off in the middle, and remember what they got."""

from collections import defaultdict
from random import Random
from typing import Protocol

from tests.simulation.fate import PageFate
from tests.simulation.loop import wait_seconds

from payrelay.clock import Clock
from payrelay.core.events.delivery import AttemptResult, Endpoint, judged
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.core.events.event import PublishedEvent
from payrelay.runtime.webhook_sender import Signer, WebhookSender

ADDRESS = "https://shop.example/events"


class Calm(Protocol):
    """Knows whether there are faults at this moment."""

    def is_calm(self) -> bool:
        """True when there are none."""
        ...

    def note(self, *words: object) -> None:
        """Something happened."""
        ...


class Receivers:
    """All endpoints of the outside world; ``received`` are the ids of events that each got, in their order."""

    def __init__(self, around: Calm, random: Random, fate: PageFate) -> None:
        self._around = around
        self._random = random
        self._fault_share = fate.endpoint_fault_share
        self.received: dict[str, list[str]] = defaultdict(list)

    def delay_s(self) -> float:
        """Draws how long a way takes."""
        return self._random.uniform(0.01, 0.4)

    def draw_fault(self) -> str | None:
        """Draws what befalls a sending."""
        if self._around.is_calm() or self._random.random() >= self._fault_share:
            return None
        return self._random.choice(("refused", "cut", "answers 500", "silent"))

    def take(self, endpoint_id: str, event: PublishedEvent) -> None:
        """Gets an event."""
        self._around.note("event", event.type, event.subject)
        self.received[endpoint_id].append(event.id)


class SimulatedSender(WebhookSender):
    """One process's way to them."""

    def __init__(self, receivers: Receivers, clock: Clock) -> None:
        super().__init__(AllowedDestinations(), clock)
        self._receivers = receivers

    async def send(self, endpoint: Endpoint, signer: Signer, event: PublishedEvent) -> AttemptResult:
        """Sends an event once; what has come there is there, whatever becomes of the answer."""
        fault = self._receivers.draw_fault()
        signer.headers(event.id, event.at_ms, "{}")
        await wait_seconds(self._receivers.delay_s())
        if fault in {"refused", "silent"}:
            await wait_seconds(15.0 if fault == "silent" else 0.0)
            return AttemptResult(failure="simulated")
        if fault == "answers 500":
            return judged(500, None, event.at_ms)
        self._receivers.take(endpoint.id, event)
        await wait_seconds(self._receivers.delay_s())
        return AttemptResult(failure="simulated") if fault == "cut" else judged(200, None, event.at_ms)
