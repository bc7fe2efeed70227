"""What an operator sees and does: a call when something needs a person, the list, a decision, a pause."""

import base64
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import (
    Scene,
    assert_envelope,
    assert_refused,
    charge_body,
    fresh,
    refund_body,
    settings_for,
    state_of,
)
from tests.scenarios.waiting import until

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

SEALING_KEY = base64.b64encode(bytes(range(32))).decode()
PAUSE_KNOWN_S = 3.0  # a second, and what a busy machine needs


def command_of(folder: Path) -> str:
    """A program that takes alerts, one a line, as soon as the folder has a file `open`.

    Each line is one write: several of them run at once.
    """
    script = folder / "call me"
    script.write_text(
        f"#!/bin/sh\nset -e\ntest -e '{folder}/open'\n"
        f"read -r alert || true\nprintf '%s\\n' \"$alert\" >> '{folder}/alerts'\n"
    )
    script.chmod(0o700)
    return f"'{script}' --loudly"


def alerts_in(folder: Path) -> list[dict[str, Any]]:
    """The alerts that the command has taken."""
    taken = folder / "alerts"
    return [json.loads(line) for line in taken.read_text().splitlines()] if taken.exists() else []


@contextmanager
def address() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address that takes alerts, and what it took."""
    taken: list[dict[str, Any]] = []

    class Taking(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/alerts?key=hush-hush", taken
        server.shutdown()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service that runs a command for each alert."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "open").touch()
    program = Program(folder, settings_for(gateway) | {"PAYRELAY_ALERT_COMMAND": command_of(folder)})
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


def differ(scene: Scene, order_id: str, key: str) -> str:
    """A charge that the gateway answers for another amount; the operation's id."""
    scene.gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(amount=500.0))
    reply = scene.client.charge(charge_body(order_id), key=key)
    assert_refused(reply, 202, "needs_attention")
    return str(reply.error["operation_id"])


def is_paused(scene: Scene) -> bool:
    """Whether a new charge is turned away."""
    return scene.client.charge(charge_body()).status == 503


def listed(program: Program, *options: str) -> list[dict[str, Any]]:
    """The operations that the command lists."""
    ran = program.run("operations", "list", "--json", *options)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)
    assert isinstance(rows, list)
    return rows


def decided(program: Program, *arguments: str) -> None:
    """A decision that is made."""
    ran = program.run("operations", "decide", *arguments, "--reason", "the statement says so", "--by", "ann", "--yes")
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


@pytest.mark.smoke
def test_another_amount_becomes_an_alert_a_decision_and_an_answer(watched: Scene) -> None:
    """The whole way: the command is run, the list and the page tell why, the client's repeat gets what was decided."""
    order_id, key = fresh("order"), fresh("key")
    operation_id = differ(watched, order_id, key)
    program = watched.program
    until(
        lambda: any(alert["operation_id"] == operation_id for alert in alerts_in(program.folder)), "the command is run"
    )
    [row] = listed(program, "--order", order_id)
    assert (row["id"], row["state"]) == (operation_id, "needs_attention")
    assert row["why"] == "The reply was for another amount than requested"

    page = program.run("operations", "show", operation_id).stdout
    assert "500.00 LKR" in page
    assert "If you decide that it failed" in page

    decided(program, operation_id, "failed")
    reply = watched.client.charge(charge_body(order_id), key=key)
    assert_refused(reply, 402, "declined")
    assert reply.header("idempotent-replayed") == "true"
    assert watched.client.charge(charge_body(order_id), key=key).body == reply.body
    assert watched.gateway.count(payhere.CHARGE, order_id) == 1
    history = watched.client.get(f"operations/{operation_id}").json["data"]["history"]
    assert (history[-1]["evidence"]["operator"], history[-1]["state"]) == ("ann", "failed")


def test_a_decided_success_is_an_answer_of_the_interface(watched: Scene) -> None:
    """Every member is there, with the payment that the person named."""
    order_id, key = fresh("order"), fresh("key")
    operation_id = differ(watched, order_id, key)
    decided(watched.program, operation_id, "succeeded", "--payment-id", "320027150501")
    reply = watched.client.charge(charge_body(order_id), key=key)

    assert_envelope(reply)
    assert (reply.status, reply.json["msg"]) == (200, "Resolved by decision")
    data = reply.json["data"]
    assert (data["order_id"], data["payment_id"], data["status_code"]) == (order_id, 320027150501, 2)


def test_an_alert_tells_what_and_how_much_and_no_secret(watched: Scene) -> None:
    """It goes to a phone, or into a chat."""
    reply = watched.client.post("payments/refund", refund_body(amount="12.50"), key=fresh("key"))
    watched.gateway.script(payhere.REFUND, "320027159999", payhere.cuts)
    reply = watched.client.post("payments/refund", refund_body("320027159999", amount="12.50"), key=fresh("key"))
    operation_id = reply.error["operation_id"]
    until(lambda: operation_id in {alert["operation_id"] for alert in alerts_in(watched.program.folder)}, "it is given")
    [alert] = [alert for alert in alerts_in(watched.program.folder) if alert["operation_id"] == operation_id]

    assert (alert["kind"], alert["amount"], alert["payment_id"]) == ("refund", 12.5, "320027159999")
    assert alert["why"] == "The connection was lost before the reply; the gateway has no way to show it"
    assert "secret" not in json.dumps(alert)
    assert "operation_needs_attention" in watched.program.log()


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("op_1", "failed", "--reason", "x"), 2, "payrelay: there is no operation op_1\n"),
        (("op_1", "failed"), 2, "payrelay: --reason is missing: say why, for those who read the history later\n"),
        (
            ("op_1", "succeeded", "--reason", "x", "--payment-id", "x"),
            2,
            "payrelay: --payment-id must be 1 to 19 digits\n",
        ),
    ],
)
def test_what_can_not_be_decided_is_one_line(watched: Scene, arguments: tuple[str, ...], code: int, line: str) -> None:
    """On standard error, with an exit code for scripts."""
    ran = watched.program.run("operations", "decide", *arguments, "--yes")

    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", line)


def test_what_is_settled_is_not_decided_again(watched: Scene) -> None:
    """Its client was told."""
    key = fresh("key")
    watched.client.charge(charge_body(), key=key)
    operation_id = watched.client.get(f"operations/by-key/{key}").json["data"]["id"]
    ran = watched.program.run("operations", "decide", operation_id, "failed", "--reason", "x", "--yes")

    assert ran.returncode == 1
    assert f"{operation_id} can't be decided any more" in ran.stderr
    assert state_of(watched.client, key) == "succeeded"


def test_a_paused_account_takes_no_new_effects_and_goes_on(watched: Scene) -> None:
    """A running server learns of it from the command; repeats, reads and the other accounts don't notice."""
    program, client, key, body = watched.program, watched.client, fresh("key"), charge_body()
    first = client.charge(body, key=key)
    assert program.run("pause", "gateway", "--reason", "wrong prices at ACME").returncode == 0
    until(partial(is_paused, watched), "the pause is known", deadline_s=PAUSE_KNOWN_S)
    order_id = fresh("order")
    reply = client.charge(charge_body(order_id))

    assert_refused(reply, 503, "unavailable")
    assert "ACME" not in str(reply)
    assert int(reply.header("retry-after") or 0) > 0
    assert watched.gateway.count(payhere.CHARGE, order_id) == 0
    assert client.charge(body, key=key).body == first.body
    assert client.get("subscriptions").status == 200
    assert client.at("second").charge(charge_body()).status == 200
    assert re.search("! gateway: paused since .*wrong prices at ACME.*no new operation", program.run("check").stdout)
    assert program.run("resume", "gateway").returncode == 0
    until(lambda: client.charge(charge_body(order_id)).status == 200, "it goes on", deadline_s=PAUSE_KNOWN_S)
    assert {"account_paused", "account_resumed"} <= {line.get("event") for line in program.log_lines()}


def test_an_alert_outlives_the_process(tmp_path: Path, gateway: GatewayDouble) -> None:
    """Nobody takes it, the power goes, and the next process gives it; the address has it, and is not called again."""
    with address() as (url, taken):
        settings = {"PAYRELAY_ALERT_COMMAND": command_of(tmp_path), "PAYRELAY_ALERT_URL": url}
        program = Program(tmp_path, settings_for(gateway) | settings)
        key = program.new_key("shop")
        program.start()
        scene = Scene(program=program, gateway=gateway, client=program.client(key))
        operation_id = differ(scene, fresh("order"), fresh("key"))
        try:
            until(lambda: "alert_not_given" in program.log(), "the command has refused it once")
            program.kill()
            (tmp_path / "open").touch()
            program.start()
            until(lambda: len(alerts_in(tmp_path)) == 1, "the alert is given")
        finally:
            program.kill()

    assert [alert["operation_id"] for alert in (*taken, *alerts_in(tmp_path))] == [operation_id, operation_id]
    assert "hush-hush" not in program.log()
    assert len([line for line in program.log_lines() if line["event"] == "operation_needs_attention"]) == 1


@pytest.fixture
def pair(tmp_path: Path, postgresql_server: "PostgresqlServer", gateway: GatewayDouble) -> Iterator[list[Scene]]:
    """Two services on one PostgreSQL database, with one command for their alerts."""
    name = f"operators_{fresh('x').removeprefix('x-')}"
    postgresql_server.run("createdb", "-h", str(postgresql_server.folder), "-U", "payrelay", name)
    (tmp_path / "open").touch()
    settings = settings_for(gateway) | {
        "PAYRELAY_DATABASE_URL": postgresql_server.url(name),
        "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY,
        "PAYRELAY_ALERT_COMMAND": command_of(tmp_path),
    }
    scenes = []
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        program = Program(folder, settings)
        key = program.new_key("shop")
        program.start()
        scenes.append(Scene(program=program, gateway=gateway, client=program.client(key)))
    yield scenes
    for scene in scenes:
        scene.program.stop()


@pytest.mark.postgresql
@pytest.mark.integration
def test_several_processes_share_alerts_decisions_and_pauses(pair: list[Scene], tmp_path: Path) -> None:
    """Each alert is given once; what is decided or paused by a command counts in both."""
    orders = [(fresh("order"), fresh("key")) for _ in range(6)]
    operation_ids = [differ(pair[number % 2], *order) for number, order in enumerate(orders)]
    until(lambda: len(alerts_in(tmp_path)) >= len(orders), "all alerts are given")
    command = pair[0].program
    assert {row["id"] for row in listed(command)} == set(operation_ids)
    for operation_id in operation_ids:
        decided(command, operation_id, "failed")
    for scene in pair:
        assert {scene.client.charge(charge_body(order), key=key).status for order, key in orders} == {402}
    assert command.run("pause", "gateway", "--reason", "x").returncode == 0
    for scene in pair:
        until(partial(is_paused, scene), "it is paused", deadline_s=PAUSE_KNOWN_S)
    assert sorted(alert["operation_id"] for alert in alerts_in(tmp_path)) == sorted(operation_ids)
