"""The clients: they charge, capture, refund, release, retry and cancel, repeat what got lost, and race each other."""

import asyncio
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Protocol

import msgspec
from tests.simulation.loop import SimulatedLoop, wait_seconds
from tests.simulation.process import Heard

CUSTOMERS: Final = ("A" * 32, "B" * 32, "DEC1" * 8)
ORDERS: Final = ("A-1", "A-2", "A-3")
AMOUNTS: Final = ("100.50", "100.50", "7", "1000")
TRIES_MAX: Final = 7
PATIENCE_S: Final = (3.0, 12.0, 60.0, 60.0)
"""How long a client waits for an answer before it hangs up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """What a client asks, as often as it asks it.

    ``wait_s`` is how long it would rather wait for an outcome. ``credential`` is a phone's token, in place of the
    principal's key.
    """

    principal: str
    method: str
    path: str
    body: bytes
    key: str | None = None
    wait_s: int = 0
    credential: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """One asking, when it began and ended, and what came back; None where nothing did."""

    ask: Ask
    request_id: str
    at_s: float
    heard_at_s: float
    heard: Heard | None


class Town(Protocol):
    """What clients know of the world."""

    loop: SimulatedLoop
    payment_ids: list[str]
    subscription_ids: list[str]

    @property
    def key_loss_share(self) -> float:
        """The share of the repeats that lose their Idempotency-Key on the way."""
        ...

    async def call(self, ask: Ask, patience_s: float) -> Told:
        """Asks once."""
        ...


class Client:
    """One client; several may act for the same principal, as the phones of one shop do."""

    def __init__(self, number: int, town: Town, random: Random, *, is_narrow: bool) -> None:
        self._town = town
        self._random = random
        self._is_narrow = is_narrow
        self._principal = random.choice(("shop", "shop", "app"))
        self._number = number
        self._keys = 0
        self._keyless = Random(f"lost keys of {number} in {random.getrandbits(32)}")  # noqa: S311, the same each time

    async def live(self) -> None:
        """Has a few errands, with pauses in between."""
        for _ in range(self._random.randint(1, 3)):
            await wait_seconds(self._random.choice((0.0, 0.0, 0.1, 5.0, 40.0)) * self._random.random())
            errand = self._random.choice(
                (self._buy, self._buy, self._buy, self._hold, self._hold, self._give_back, self._retry, self._cancel)
            )
            await errand()

    async def _buy(self) -> None:
        """Charges; then perhaps looks, and perhaps gives it back."""
        told = await self._persist(self._charge("PAYMENT"))
        data = data_of(told)
        if isinstance(data.get("payment_id"), int):
            self._town.payment_ids.append(str(data["payment_id"]))
            for _ in range(self._random.choice((0, 0, 0, 0, 1, 1, 2, 3))):
                # A second one has a key of its own, or none: it is another refund, or the same once more.
                await self._persist(self._refund(str(data["payment_id"])))

    async def _hold(self) -> None:
        """Holds money; then takes it, lets it go, or tries both."""
        told = await self._persist(self._charge("AUTHORIZE"))
        token = data_of(told).get("authorization_token")
        if not isinstance(token, str):
            return
        await wait_seconds(self._random.choice((0.0, 1.0, 100.0)))
        asks = [self._capture(token), self._capture(token), self._release(token)]
        self._random.shuffle(asks)
        if self._random.random() < 0.5:
            await self._persist(asks[0])
        else:
            await asyncio.gather(*(self._persist(ask) for ask in asks[: self._random.randint(1, 2)]))

    async def _give_back(self) -> None:
        await self._look(self._choice(ORDERS))
        await self._persist(self._refund(self._random.choice(self._town.payment_ids)))

    async def _retry(self) -> None:
        subscription_id = self._random.choice(self._town.subscription_ids)
        await self._persist(self._ask("POST", f"subscriptions/{subscription_id}/retry"))

    async def _cancel(self) -> None:
        subscription_id = self._random.choice(self._town.subscription_ids)
        await self._persist(self._ask("DELETE", f"subscriptions/{subscription_id}"))

    def _charge(self, kind: str) -> Ask:
        members: dict[str, object] = {
            "type": kind,
            "order_id": self._choice(ORDERS),
            "items": self._choice(("Tea", "Tea", "Coffee")),
            "currency": self._choice(("LKR", "LKR", "LKR", "USD")),
            "amount": msgspec.Raw(self._choice(AMOUNTS).encode()),
            "customer_token": self._choice((CUSTOMERS[0], *CUSTOMERS)),
        }
        return self._ask("POST", "payments/charge", members)

    def _choice(self, choices: tuple[str, ...]) -> str:
        return choices[0] if self._is_narrow else self._random.choice(choices)

    def _capture(self, token: str) -> Ask:
        amount = self._random.choice(AMOUNTS)
        return self._ask(
            "POST",
            "payments/capture",
            {"authorization_token": token, "amount": msgspec.Raw(amount.encode()), "description": "sent"},
        )

    def _release(self, token: str) -> Ask:
        return self._ask("POST", "payments/refund", {"authorization_token": token, "description": "not wanted"})

    def _refund(self, payment_id: str) -> Ask:
        members: dict[str, object] = {"payment_id": payment_id, "description": "not wanted"}
        if self._random.random() < 0.5:
            members["amount"] = msgspec.Raw(self._random.choice(("7", "3.25", "100.50")).encode())
        return self._ask("POST", "payments/refund", members)

    def _ask(self, method: str, path: str, members: dict[str, object] | None = None) -> Ask:
        key = None
        if self._random.random() < 0.7:
            self._keys += 1
            # Now and then a key that somebody else of the same principal uses as well.
            key = "shared" if self._random.random() < 0.05 else f"k-{self._number}-{self._keys}"
        body = b"" if members is None else msgspec.json.encode(members)
        wait_s = self._random.choice((0, 0, 3, 20))
        return Ask(principal=self._principal, method=method, path=path, body=body, key=key, wait_s=wait_s)

    async def _look(self, order_id: str) -> None:
        await self._town.call(
            Ask(principal=self._principal, method="GET", path=f"payments/{order_id}", body=b""), PATIENCE_S[1]
        )

    async def _persist(self, ask: Ask) -> Told | None:
        """Asks the same again until it is told something final, or loses interest; sometimes by two at once."""
        told: Told | None = None
        for number in range(self._random.randint(1, TRIES_MAX)):
            if number and ask.key is not None and self._keyless.random() < self._town.key_loss_share:
                ask = replace(ask, key=None)  # from here on, as where a proxy has lost it
            asking = self._town.call(ask, self._random.choice(PATIENCE_S))
            if number == 0 and self._random.random() < 0.15:
                other = replace(ask, key=None) if self._keyless.random() < self._town.key_loss_share else ask
                answers = await asyncio.gather(asking, self._town.call(other, 60.0))
                told = answers[0]
            else:
                told = await asking
            heard = told.heard
            if heard is not None and heard.http_status not in {202, 409, 503}:
                return told
            await self._wait(heard)
        return told

    async def _wait(self, heard: Heard | None) -> None:
        if heard is not None and heard.http_status == 202 and self._random.random() < 0.3:
            path = heard.headers.get("location", "").partition("/api/")[2]
            await self._town.call(Ask(principal=self._principal, method="GET", path=path, body=b""), 12.0)
        retry_after_s = 1 if heard is None else int(heard.headers.get("retry-after", "1"))
        wait_s = retry_after_s if self._random.random() < 0.6 else 0.2
        await wait_seconds(min(wait_s, 60) * self._random.uniform(0.5, 1.5))


def data_of(told: Told | None) -> dict[str, object]:
    """Gives the data of a good answer; empty where there is none."""
    if told is None or told.heard is None or told.heard.http_status != 200:
        return {}
    data = msgspec.json.decode(told.heard.body).get("data")
    return data if isinstance(data, dict) else {}
