"""What is old goes while the service runs: a repeat then charges nobody, and the audit goes on from what is left."""

import asyncio
import json
from pathlib import Path
from typing import Final

import structlog
from tests.flows.world import asked
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import CUSTOMER_TOKEN, assert_refused, charge_body, fresh, settings_for
from tests.scenarios.waiting import until

from payrelay.app import running
from payrelay.clock import Clock
from payrelay.core.calls import Charge
from payrelay.flows.payments.charge import charge
from payrelay.settings import read_settings

LONG_AGO_MS: Final = 500 * 86_400_000


class OldClock(Clock):
    """Tells the time of long ago."""

    def now_ms(self) -> int:
        """Gives it."""
        return super().now_ms() - LONG_AGO_MS


async def charge_long_ago(program: Program, order_id: str) -> str:
    """Charges an order as the service would have done it then; gives the operation's id."""
    settings = read_settings(program.environment, program.folder)
    async with running(
        settings, clock=OldClock(), log=structlog.get_logger(wrapper_class=structlog.BoundLogger)
    ) as service:
        call = Charge(
            authorize=False,
            order_id=order_id,
            items="Taxi Hire 123",
            currency="LKR",
            amount_minor=34_567,
            customer_token=CUSTOMER_TOKEN,
        )
        answer = await charge(service.relay, asked(service.relay, order_id, principal="shop"), call)
        assert answer.http_status == 200, answer
        return dict(answer.headers)["Payrelay-Operation"]


def test_an_old_operation_is_cleared_and_stays_done(tmp_path: Path, gateway: GatewayDouble) -> None:
    """Its answer, its call and its history are gone; its key stays taken, its row is shown, and the audit verifies."""
    program = Program(tmp_path, settings_for(gateway))
    key, order_id = program.new_key("shop"), fresh("order")
    operation_id = asyncio.run(charge_long_ago(program, order_id))
    program.start()

    def cleared() -> dict[str, int]:
        kinds = json.loads(program.run("retention", "status", "--json").stdout)["kinds"]
        return {each["kind"]: each["cleared"] for each in kinds}

    until(lambda: [cleared()[kind] for kind in ("answers", "calls", "histories")] == [1, 1, 1], "it is cleared")
    client = program.client(key)
    assert_refused(client.charge(charge_body(order_id), key=order_id), 409, "conflict")
    assert gateway.count(payhere.CHARGE, order_id) == 1
    shown = client.get(f"operations/{operation_id}")
    assert (shown.json["data"]["state"], len(shown.json["data"]["history"])) == ("succeeded", 1)
    verified = program.run("audit", "verify")
    assert "1 answers, 1 calls" in verified.stdout
    assert "0 findings" not in verified.stdout
    assert "findings" not in verified.stdout, verified.stdout
    assert program.run("operations", "show", operation_id).returncode == 0
    program.stop()
