"""Counts the work of a read, a charge and a replay, or compares it with the budget: ``python -m tests.work.measure``.

A program of its own, because what it counts with can't be taken back from a process. It has everything on that is on in
service, but no server before it: requests come as ASGI hands them over.
"""

import argparse
import asyncio
import base64
import io
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Final

from tests.api.fakes import Caller
from tests.work.budget import BUDGET, excess, rounded
from tests.work.counting import COMMITS, SYNCS, Work, counting, tapped

from payrelay.api.http.request_log import json_log
from payrelay.app import running
from payrelay.clock import Clock
from payrelay.core.secret import Secret
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.settings import Settings, gateway_settings
from payrelay_simulator import DEFAULT_MERCHANT, Simulator, Switches, demo_world
from payrelay_simulator import serve as serve_simulator
from payrelay_simulator.demo import CUSTOMER_TOKEN

TIMES: Final = 30
"""How often a request of each kind is made."""
USUAL_RANK: Final = TIMES // 4
"""Makes the budget."""
LEAST_RANK: Final = 0
"""Is compared with the budget: on a busy machine the worker comes between in nearly every request."""
WARM_UP: Final = 5
REST_S: Final = 0.05
SERIES: Final = 25
"""Charges that are made one after the other without a rest, as by a client with one connection."""
ACCOUNT: Final = "gateway"
SEALING_KEY: Final = Secret(base64.b64encode(bytes(range(32))).decode())


def order(number: int) -> str:
    """Names an order; all have names of one length."""
    return f"Order-{number:05}"


async def measured(settings: Settings, work: Work, rank: int) -> dict[str, dict[str, int]]:
    """Gives each number for each kind of request, where the worker added little: the one of this rank from below."""
    async with running(settings, clock=Clock(), log=json_log(io.BytesIO(), Clock())) as service:
        issued = await issue_key(service.credentials, Clock(), KeyRequest(principal="shop", environment="sandbox"))
        caller = Caller(service.api)

        async def call(method: str, path: str, body: bytes = b"", **headers: str) -> None:
            given = {"Authorization": f"Bearer {issued.key}", **headers}
            reply = await caller(method, f"/{ACCOUNT}/api/{path}", headers=given, body=body)
            if reply.status != HTTPStatus.OK:
                raise RuntimeError(f"{method} {path}: {reply}")

        async def charge(number: int) -> None:
            asked = {"type": "PAYMENT", "order_id": order(number), "items": "Tea", "currency": "LKR", "amount": 100}
            body = json.dumps(asked | {"customer_token": CUSTOMER_TOKEN}).encode()
            await call("POST", "payments/charge", body, **{"Idempotency-Key": f"key-{number:05}"})

        async def read(number: int) -> None:
            await call("GET", f"payments/{order(number)}")

        return {
            "charge": await _usual(work, charge, rank),
            "read": await _usual(work, read, rank),
            "replay": await _usual(work, charge, rank),
            f"{SERIES} charges": await _commits_of_series(work, charge, rank),
        }


async def _usual(work: Work, request: Callable[[int], Awaitable[None]], rank: int) -> dict[str, int]:
    """Makes the requests one after the other, each of another order."""
    counted: list[Counter[str]] = []
    for number in range(WARM_UP + TIMES):
        work.begin()
        await request(number)
        # What goes on behind the answer counts for its request: its event, the log, the connection's way back.
        await asyncio.sleep(REST_S)  # by the machine's clock, as the worker goes, which tells nobody that it rests
        counted.append(work.end())
    counted = counted[WARM_UP:]
    usual = {what: sorted(each[what] for each in counted)[rank] for what in sorted(set().union(*counted))}
    return {what: number for what, number in usual.items() if number}


async def _commits_of_series(work: Work, charge: Callable[[int], Awaitable[None]], rank: int) -> dict[str, int]:
    """Makes charges without a rest between them; gives their commits and syncs, where the engine shows any."""
    numbers = itertools.count(WARM_UP + TIMES)
    counted: list[Counter[str]] = []
    for _ in range(TIMES // WARM_UP):
        work.begin()
        for _ in range(SERIES):
            await charge(next(numbers))
        counted.append(work.end())
        await asyncio.sleep(REST_S)  # as above
    shown = {what: sorted(each[what] for each in counted)[rank * len(counted) // TIMES] for what in (COMMITS, SYNCS)}
    return {what: number for what, number in shown.items() if number}


async def _run(database: str, folder: Path, work: Work, rank: int) -> dict[str, dict[str, int]]:
    simulator = Simulator(switches=Switches(rate_limit_calls=0))
    demo_world(simulator)
    async with serve_simulator(simulator) as simulated:
        account = gateway_settings(
            {
                "base_url": simulated.base_url,
                "app_id": DEFAULT_MERCHANT.app_id,
                "app_secret": DEFAULT_MERCHANT.app_secret,
                "rate_limit": "off",
            }
        )
        settings = Settings(
            database_url=Secret(database), encryption_key=SEALING_KEY, mark_path=folder, gateways={ACCOUNT: account}
        )
        return await measured(settings, work, rank)


def main() -> int:
    """Prints what was counted; returns 1 where it is over the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgresql", type=Path, help="the folder of a server's socket; else SQLite", default=None)
    parser.add_argument("--database", default="postgres")
    parser.add_argument("--write", action="store_true", help="make what is counted the budget")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work = stack.enter_context(counting())
        store, address = "sqlite", f"sqlite:///{folder}/payrelay.db"
        if options.postgresql is not None:
            tap = stack.enter_context(tapped(options.postgresql, folder, work))
            store, address = "postgresql", f"postgresql://payrelay@/{options.database}?host={tap}"
        rank = USUAL_RANK if options.write else LEAST_RANK
        counted = asyncio.run(_run(address, folder, work, rank))
    counted = {request: numbers for request, numbers in counted.items() if numbers}
    print(json.dumps(counted, indent=2, sort_keys=True))  # noqa: T201
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    if options.write:
        budget[store] = rounded(counted)
        BUDGET.write_text(json.dumps(budget, indent=2, sort_keys=True) + "\n")
        return 0
    found = excess(counted, budget[store])
    print("\n".join(found) or "within the budget")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
