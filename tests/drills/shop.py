"""Clients of the service: they send, repeat what they have no answer for, and note everything that they were told."""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from tests.drills.customers import Customers
from tests.drills.intentions import Deed, Intention
from tests.drills.told import FINAL, Meaning, Told, told_by
from tests.scenarios.http_client import encode

CLIENTS: Final = 8
PAGE_TURNS_MAX: Final = 60
"""A shop asks so often for one checkout, before it leaves it to an operator: half a minute."""
A_SECOND: Final = 8
"""Requests of a load that lasts as long as something else does."""
ANSWER_S_MAX: Final = 30.0
AGAIN_AFTER_S: Final = 0.5
"""A client's pause before it repeats."""
SLOWEST_A_SECOND: Final = 4
"""Requests that a busy machine answers in a second at least."""
UNHEARD_OF: Final = 7
"""The answer to the first try of every seventh request is lost on the way to a client that shall not hear all."""


NEEDED: Final = {Deed.CAPTURE: "authorization_token", Deed.VOID: "authorization_token"}
"""What an operation takes from the answer to its base; others take the payment."""


def patience_s(within_s: float, requests: int) -> float:
    """Gives how long so many requests may take: ``within_s``, or longer where they are many."""
    return max(within_s, requests / SLOWEST_A_SECOND)


@dataclass
class Shop:
    """One principal with many clients.

    Attributes:
        key: its API key.
        customers: of its checkouts.
        ports: where the service listens; each request goes to the next one.
        told: by an intention's name, everything that was heard of it, oldest first.
        unknown_reads: operations that it was told of, and that the service later said not to know.
        decided: the names of checkouts that an operator decided about.
    """

    key: str
    ports: list[int]
    customers: Customers
    told: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    unknown_reads: list[str] = field(default_factory=list)
    decided: set[str] = field(default_factory=set)
    _bodies: dict[str, dict[str, object] | None] = field(default_factory=dict)
    _sent: int = 0

    def last(self, intention: Intention) -> Meaning:
        """Gives what its newest answer means."""
        heard = self.told.get(intention.name)
        return heard[-1].meaning if heard else Meaning.SILENCE

    def done(self, intention: Intention) -> Told | None:
        """Gives the first success that was heard of it."""
        return next((each for each in self.told.get(intention.name, ()) if each.meaning is Meaning.DONE), None)

    async def bring(
        self, wanted: Iterable[Intention], *, within_s: float, lasts_s: float = 0.0, loses_answers: bool = False
    ) -> None:
        """Sends each until it has a final answer or is a person's, or until the time is over.

        The first tries are spread over ``lasts_s``. Many requests have more time than ``within_s``.
        """
        queue = deque(wanted)
        turns = Counter[str]()
        pause_s = lasts_s * CLIENTS / max(1, len(queue))
        end_s = time.monotonic() + patience_s(within_s, len(queue))
        timeout = aiohttp.ClientTimeout(total=ANSWER_S_MAX)
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as web:

            async def work() -> None:
                while queue and time.monotonic() < end_s:
                    intention = queue.popleft()
                    if not self._can_begin(intention):
                        if self._is_hopeful(intention):
                            queue.append(intention)
                            await asyncio.sleep(0.05)  # a client's pause
                        continue
                    answer = await self._send(web, intention)
                    is_lost = loses_answers and intention.name not in self.told and self._sent % UNHEARD_OF == 0
                    if is_lost:
                        answer = Told(status=0, at_s=answer.at_s)
                    self.told[intention.name].append(answer)
                    turns[intention.name] += 1
                    if answer.meaning not in FINAL | {Meaning.PERSON} and self._is_due(intention, turns):
                        queue.append(intention)
                    await asyncio.sleep(pause_s if answer.meaning in FINAL else AGAIN_AFTER_S)  # a client's pause

            await asyncio.gather(*(work() for _ in range(CLIENTS)))

    async def bring_until(
        self, finished: "asyncio.Future[Any]", draw: Callable[[], list[Intention]], *, within_s: float
    ) -> list[Intention]:
        """Brings what is drawn, again and again until something has finished; gives all that was drawn."""
        drawn: list[Intention] = []
        end_s = time.monotonic() + within_s
        while not finished.done() and time.monotonic() < end_s:
            drawn += (fresh := draw())
            await self.bring(fresh, within_s=within_s, lasts_s=len(fresh) / A_SECOND)
        return drawn

    async def read_all(self, operation_ids: Sequence[str]) -> None:
        """Asks for each operation once; what is said not to be there, although it was told of, is noted."""
        timeout = aiohttp.ClientTimeout(total=ANSWER_S_MAX)
        async with aiohttp.ClientSession(timeout=timeout) as web:
            statuses = [await self._read(web, operation_id) for operation_id in operation_ids]
        self.unknown_reads += [each for each, status in zip(operation_ids, statuses, strict=True) if status == 404]

    async def _read(self, web: aiohttp.ClientSession, operation_id: str) -> int:
        address = f"http://127.0.0.1:{self._port()}/gateway/api/operations/{operation_id}"
        try:
            async with web.get(address, headers={"Authorization": f"Bearer {self.key}"}) as response:
                return response.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    def operation_ids(self) -> list[str]:
        """Gives every operation that it was told of."""
        return sorted({each.operation_id for heard in self.told.values() for each in heard if each.operation_id})

    def answers(self) -> str:
        """Counts the statuses that were heard."""
        statuses = Counter(each.status for heard in self.told.values() for each in heard)
        return ", ".join(f"{count} x {status or 'no answer'}" for status, count in sorted(statuses.items()))

    def _is_due(self, intention: Intention, turns: Counter[str]) -> bool:
        """Tells whether it is asked again in this round: a page that its customer leaves alone is not, for ever."""
        if intention.deed is not Deed.CHECKOUT:
            return True
        return intention.order_id not in self.customers.hesitating and turns[intention.name] < PAGE_TURNS_MAX

    def _can_begin(self, intention: Intention) -> bool:
        if intention.name in self._bodies or intention.base is None:
            return True
        answer = self.done(intention.base)
        return answer is not None and NEEDED.get(intention.deed, "payment_id") in answer.data

    def _is_hopeful(self, intention: Intention) -> bool:
        """Tells whether what it acts on may still come by itself: not from a refusal, and not from a person."""
        base = intention.base
        return base is not None and self.last(base) not in FINAL | {Meaning.PERSON}

    def _port(self) -> int:
        self._sent += 1
        return self.ports[self._sent % len(self.ports)]

    async def _send(self, web: aiohttp.ClientSession, intention: Intention) -> Told:
        """Sends it as it was sent before."""
        if intention.name not in self._bodies:
            base = None if intention.base is None else self.done(intention.base)
            self._bodies[intention.name] = intention.body({} if base is None else base.data)
        body = self._bodies[intention.name]
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        if intention.key is not None:
            headers["Idempotency-Key"] = intention.key
        address = f"http://127.0.0.1:{self._port()}/gateway/api/{intention.path}"
        content = None if body is None else encode(body).encode()
        began_s = time.monotonic()
        try:
            async with web.request(intention.method, address, data=content, headers=headers) as response:
                text = await response.read()
                operation_id = response.headers.get("Payrelay-Operation", "")
        except (aiohttp.ClientError, TimeoutError):
            return Told(status=0, elapsed_s=time.monotonic() - began_s, at_s=time.monotonic())
        answer = told_by(response.status, text, operation_id, began_s)
        if intention.deed is Deed.CHECKOUT:
            return await self.customers.visit(web, intention.order_id, answer)
        return answer
