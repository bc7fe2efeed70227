"""A recovery as an operator and a client see it: the program on SQLite, its commands, and a gateway behind sockets."""

import asyncio
import json

from tests.cli.commands import Ran, run_inside
from tests.flows.world import CREDENTIAL
from tests.scenarios import gateway_double as payhere
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, operation_of
from tests.scenarios.waiting import until

from payrelay.cli.session import session
from payrelay.core.calls import Charge
from payrelay.core.payments.idempotency import fingerprint_of
from payrelay.core.payments.operation import Kind, claim_of_key
from payrelay.flows.operations.intent import Intent
from payrelay.flows.relay import Request
from payrelay.recovery.flows.hold import hold
from payrelay.settings import read_settings

LOST_SINCE = "2026-01-01T00:00Z"


def command(own: Scene, *arguments: str) -> Ran:
    """Runs a command beside the running service."""
    return run_inside(own.program.folder, own.program.environment, *arguments)


def hold_authorization(own: Scene) -> tuple[dict[str, object], str]:
    """Holds an authorization beside the running service; gives its body and its Idempotency-Key."""
    body, key = charge_body(type="AUTHORIZE"), fresh("key")

    async def held() -> None:
        call = Charge(
            authorize=True,
            order_id=str(body["order_id"]),
            items=str(body["items"]),
            currency="LKR",
            amount_minor=34_567,
            customer_token=str(body["customer_token"]),
        )
        intent = Intent(
            kind=Kind.AUTHORIZATION,
            call=call,
            subject=f"order/{call.order_id}",
            order_id=call.order_id,
            amount_minor=call.amount_minor,
            currency=call.currency,
        )
        request = Request(account="gateway", credential=CREDENTIAL, request_id=fresh("req"), idempotency_key=key)
        settings = read_settings(own.program.environment, own.program.folder)
        async with session(settings) as relay:
            await hold(relay, request, intent, fingerprint_of("gateway", call), claim_of_key(key))

    asyncio.run(held())
    return body, key


def test_an_operator_recovers_and_nothing_is_sent_twice(own: Scene) -> None:
    """From `payrelay recover` to its end: what is held is told truthfully, decided once, and then answered."""
    asked = command(own, "recover", "--lost-since", LOST_SINCE)
    assert (asked.code, "no recovery was begun" in asked.err) == (2, True)
    begun = own.program.run("recover", "--lost-since", LOST_SINCE, "--by", "ann", "--note", "restored", "--yes")
    assert begun.returncode == 0, begun.stderr
    sent_body, sent_key = hold_authorization(own)
    done_body, done_key = hold_authorization(own)
    refused_body, refused_key = hold_authorization(own)

    repeat = own.client.charge(sent_body, key=sent_key)
    assert (repeat.status, repeat.json["error"]["code"]) == (202, "needs_attention")
    assert operation_of(own.client, repeat)["state"] == "held"
    status = json.loads(command(own, "recover", "status", "--json").out)
    assert (status["incarnation"], status["is_recovering"], status["held"]) == (2, True, {"authorization": 3})
    assert (status["operator"], status["note"], status["waiting_for"]) == ("ann", "restored", ["shop"])
    ended = command(own, "recover", "end", "--yes")
    assert (ended.code, "held: 3 of kind authorization" in ended.err) == (1, True)

    for decision, body, *more in (
        ("send", sent_body),
        ("done", done_body, "--payment-id", "320027150501"),
        ("refuse", refused_body),
    ):
        ran = command(
            own, "recover", "decide", decision, "--where", f"order={body['order_id']}", *more, "--reason", "x", "--yes"
        )
        assert ran.code == 0, ran.err
    sent, done = own.client.charge(sent_body, key=sent_key), own.client.charge(done_body, key=done_key)
    assert (sent.status, done.status, done.json["data"]["payment_id"]) == (200, 200, 320027150501)
    counts = [own.gateway.count(payhere.CHARGE, str(each["order_id"])) for each in (sent_body, done_body, refused_body)]
    assert counts == [1, 0, 0]
    assert refused_key not in {sent_key, done_key}


def test_a_principal_acknowledges_and_the_operator_ends_it(own: Scene) -> None:
    """The client names the incarnation that it read; the recovery then waits for nobody, and ends on the word."""
    assert_refused(own.client.post("recovery/acknowledgement", {"incarnation": 2}), 409, "conflict")
    assert command(own, "recover", "--lost-since", LOST_SINCE, "--yes").code == 0
    shown = own.client.get("recovery").json["data"]
    assert (shown["incarnation"], shown["is_recovering"], shown["acknowledged_at"]) == (2, True, None)
    assert own.client.post("recovery/acknowledgement", {"incarnation": 2}).json["data"]["acknowledged_at"]
    assert_refused(own.client.post("recovery/acknowledgement", {"incarnation": "2"}), 422, "invalid_request")
    told = command(own, "recover", "status").out
    assert "Acknowledged: shop. Not yet: none." in told
    ended = command(own, "recover", "end", "--yes")
    assert ended.code == 0, ended.err
    until(lambda: not own.client.get("recovery").json["data"]["is_recovering"], "the recovery is over")
    assert command(own, "recover", "end", "--yes").code == 1
