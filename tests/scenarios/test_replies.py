"""How the gateway's replies are read: each documented one, and each way in which a reply can be none."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import Asked, Behaviour, Conversation, GatewayDouble
from tests.scenarios.http_client import Raw, Reply
from tests.scenarios.program import Program, account, free_port
from tests.scenarios.stories import (
    ACCOUNTS,
    Scene,
    assert_envelope,
    assert_refused,
    capture_body,
    charge_body,
    fresh,
    fresh_number,
    operation_of,
    refund_body,
    settings_for,
)

_IN_TURN: Iterator[str] = itertools.cycle(ACCOUNTS[1:])
HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
DOMAIN = "Access denied for the domain"
CAPTURE_TOO_MUCH = "Capture amount must be less than or equal to the authorized amount"
AUTHENTICATION = payhere.refuses("Authentication error", -2)


# Replies that no effect can be read from. Each must end as unknown: told as a failure, the customer pays twice.
UNREADABLE: dict[str, Behaviour] = {
    "HTML with 502": payhere.says(HTML, 502, kind="text/html"),
    "HTML with 200": payhere.says(HTML, 200, kind="text/html"),
    "nothing": payhere.says(b""),
    "a 500 with an envelope": payhere.refuses("Something went wrong", -1, 500),
    "a 503 with an envelope": payhere.refuses("Service unavailable", -1, 503),
    "half a body": payhere.breaks_off,
    "a cut after reading": payhere.cuts,
    "a flood": payhere.floods,
    "a list": payhere.says([]),
    "null": payhere.says(b"null"),
    "text": payhere.says(b'"ok"'),
    "half JSON": payhere.says(b'{"status":1,"msg":'),
    "no status": payhere.says({"msg": "ok", "data": None}),
    "an unknown status": payhere.says({"status": 7, "msg": "ok", "data": None}),
    "a success without data": payhere.says({"status": 1, "msg": "ok", "data": None}),
    "a success whose data is text": payhere.says({"status": 1, "msg": "ok", "data": "ok"}),
    "invalid_token about another token": payhere.says(
        {"error": "invalid_token", "error_description": "Access token expired: cb5c47fd-741c-489a-b69e-fd73155ca34e"},
        401,
    ),
    "another error": payhere.says({"error": "server_error", "error_description": "oops"}, 500),
}
DIFFERENT: dict[str, Behaviour] = {
    "another amount": payhere.succeeds_with(amount=345.68),
    "another order": payhere.succeeds_with(order_id="OrderOfSomebodyElse"),
    "another currency": payhere.succeeds_with(currency="USD"),
    "an unknown status_code": payhere.succeeds_with(status_code=9),
    "a charged-back status_code": payhere.succeeds_with(status_code=-3),
    "a hold where a payment was asked": payhere.succeeds_with(status_code=3),
    "a status_code of text": payhere.succeeds_with(status_code="2"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_charge_without_a_readable_answer_is_unknown(scene: Scene, name: str) -> None:
    """It was sent and we can't tell: 202, never a failure and never a success; the operation says the same."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, UNREADABLE[name])
    reply = scene.client.at(spared_account()).charge(charge_body(order_id))
    assert_unknown(scene, reply, {"unknown"})
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


def spared_account() -> str:
    """The next one of the accounts in turn: so few faults meet on one that its circuit breaker stays closed."""
    return next(_IN_TURN)


def assert_unknown(scene: Scene, reply: Reply, states: set[str]) -> None:
    """202 with everything that one needs to come back: where, when and how."""
    state = operation_of(scene.client, reply)["state"]
    assert_refused(reply, 202, "needs_attention" if state == "needs_attention" else "outcome_unknown")
    assert reply.json["data"] is None
    assert int(reply.header("retry-after") or "") > 0
    assert reply.error["operation_id"] in (reply.header("location") or "")
    assert state in states


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_charge_that_differs_from_what_was_asked_is_no_success(scene: Scene, name: str) -> None:
    """Order, amount, currency and status code are compared: a reply about something else proves nothing."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, DIFFERENT[name])
    reply = scene.client.at(spared_account()).charge(charge_body(order_id))
    assert_unknown(scene, reply, {"unknown", "needs_attention"})


@pytest.mark.parametrize("status_code", [2, 3])
def test_a_hold_succeeds_with_either_code(scene: Scene, status_code: int) -> None:
    """AUTHORIZE succeeds with 2 or 3 and yields the token that a capture needs."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(status_code=status_code))
    reply = scene.client.charge(charge_body(order_id, type="AUTHORIZE"))
    assert reply.status == 200, str(reply)
    assert reply.json["data"]["authorization_token"]


@pytest.mark.parametrize("status_code", [-1, -2])
def test_a_declined_charge_passes_its_data_on(scene: Scene, status_code: int) -> None:
    """402 with the gateway's `msg` and `data`: the shop shows why."""
    order_id = fresh("order")
    scene.gateway.script(
        payhere.CHARGE, order_id, payhere.succeeds_with(status_code=status_code, status_message="No funds")
    )
    reply = scene.client.charge(charge_body(order_id))
    assert_refused(reply, 402, "declined")
    assert (reply.json["data"]["status_message"], reply.json["data"]["order_id"]) == ("No funds", order_id)


@pytest.mark.parametrize("http_status", [200, 400, 422])
@pytest.mark.parametrize(
    ("msg", "status", "code"),
    [
        ("Invalid token", 422, "invalid_request"),
        ("Invalid currency", 422, "invalid_request"),
        ("Invalid amount", 422, "invalid_request"),
        ("Card declined by the bank", 402, "declined"),
    ],
)
def test_a_charges_refusals(scene: Scene, http_status: int, msg: str, status: int, code: str) -> None:
    """By their text, whether they come with 200, 400 or 422; the gateway's words are passed on."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.refuses(msg, -1, http_status))
    reply = scene.client.charge(charge_body(order_id))
    assert_refused(reply, status, code)
    assert reply.json["msg"] == msg


EFFECTS = [
    ("payments/charge", payhere.CHARGE),
    ("payments/capture", payhere.CAPTURE),
    ("payments/refund", payhere.REFUND),
    ("subscriptions/{id}/retry", payhere.RETRY),
    ("subscriptions/{id}", payhere.CANCEL),
]


def effect(scene: Scene, upstream: str, subject: str, account_name: str = "gateway") -> Reply:
    """Any of the five effects on a subject, without a key."""
    client = scene.client.at(account_name)
    if upstream == payhere.CANCEL:
        return client.delete(f"subscriptions/{subject}")
    if upstream == payhere.RETRY:
        return client.post(f"subscriptions/{subject}/retry")
    body = {
        payhere.CHARGE: charge_body(subject),
        payhere.CAPTURE: capture_body(subject),
        payhere.REFUND: refund_body(subject),
    }[upstream]
    return client.post(upstream.replace("payment/", "payments/"), body)


@pytest.mark.parametrize("upstream", [upstream for _, upstream in EFFECTS])
@pytest.mark.parametrize(
    "behaviour",
    [payhere.refuses(DOMAIN, -1, 401), payhere.refuses(DOMAIN, -1, 403), AUTHENTICATION],
    ids=["domain 401", "domain 403", "authentication"],
)
def test_a_gateway_that_refuses_us_is_502(scene: Scene, upstream: str, behaviour: Behaviour) -> None:
    """Credentials and domain are our trouble, never the client's 401; nothing was executed, so nothing is guarded."""
    subject = fresh_number()
    scene.gateway.script(upstream, subject, behaviour)
    assert_refused(effect(scene, upstream, subject), 502, "gateway_refused_us")
    assert effect(scene, upstream, subject).status == 200


@pytest.mark.parametrize("upstream", [upstream for _, upstream in EFFECTS])
def test_a_blocked_effect_is_503_and_not_executed(scene: Scene, upstream: str) -> None:
    """429: the gateway said no before it did anything, so the same request may come again."""
    subject = fresh_number()
    scene.gateway.script(upstream, subject, payhere.says("slow down", 429, kind="text/plain"))
    reply = effect(scene, upstream, subject, spared_account())
    assert reply.status == 503, str(reply)
    assert_envelope(reply)
    assert reply.error["retry"] in {"same_key", "after"}


@pytest.mark.parametrize("upstream", [upstream for _, upstream in EFFECTS])
@pytest.mark.parametrize("name", ["HTML with 502", "half a body", "a cut after reading", "an unknown status"])
def test_every_effect_without_a_readable_answer_is_unknown(scene: Scene, upstream: str, name: str) -> None:
    """Captures, refunds, retries and cancellations too: what was sent is not known to have failed."""
    subject = fresh_number()
    scene.gateway.script(upstream, subject, UNREADABLE[name])
    reply = effect(scene, upstream, subject, spared_account())
    assert_refused(reply, 202, "outcome_unknown")


@pytest.mark.parametrize(
    ("upstream", "behaviour", "status", "code"),
    [
        (payhere.CAPTURE, payhere.refuses("Invalid token"), 422, "invalid_request"),
        (payhere.CAPTURE, payhere.refuses(CAPTURE_TOO_MUCH), 422, "invalid_request"),
        (payhere.CAPTURE, payhere.refuses("Authorization is already CAPTURED", -2), 409, "conflict"),
        (payhere.CAPTURE, payhere.refuses("Authorization is already REFUNDED", -2), 409, "conflict"),
        (payhere.CAPTURE, payhere.captures_with(status_code=0), 202, "outcome_unknown"),
        (payhere.CAPTURE, payhere.captures_with(captured_amount=79.0), 202, "needs_attention"),
        (payhere.REFUND, payhere.refuses("Error processing refund"), 422, "invalid_request"),
        (payhere.REFUND, payhere.says({"status": 0, "msg": "Error initiating", "data": None}), 202, "outcome_unknown"),
        (payhere.RETRY, payhere.refuses("Subscription is not eligible for retrying"), 409, "conflict"),
        (payhere.CANCEL, payhere.refuses("Subscription is already cancelled."), 409, "conflict"),
        (payhere.CANCEL, payhere.refuses("Subscription is already completed."), 409, "conflict"),
    ],
)
def test_the_other_effects_replies(scene: Scene, upstream: str, behaviour: Behaviour, status: int, code: str) -> None:
    """The documented replies of capture, refund, retry and cancel."""
    subject = fresh_number()
    scene.gateway.script(upstream, subject, behaviour)
    assert_refused(effect(scene, upstream, subject, "second"), status, code)


def test_the_gateways_words_are_passed_on_in_a_conflict(scene: Scene) -> None:
    """409 says why in the gateway's own words."""
    number = fresh_number()
    scene.gateway.script(payhere.CANCEL, number, payhere.refuses("Subscription is already completed."))
    assert scene.client.delete(f"subscriptions/{number}").json["msg"] == "Subscription is already completed."


READS = [
    ("payments/{id}", payhere.SEARCH),
    ("subscriptions/{id}", payhere.SUBSCRIPTIONS + "/{id}"),
    ("subscriptions/{id}/payments", payhere.SUBSCRIPTIONS + "/{id}/payments"),
]


@pytest.mark.parametrize(("path", "upstream"), READS)
@pytest.mark.parametrize(
    ("behaviour", "answer"),
    [
        (payhere.refuses("No such thing"), (404, "not_found")),
        (payhere.refuses("No such thing", -1, 400), (404, "not_found")),
        (AUTHENTICATION, (502, "gateway_refused_us")),
        (payhere.refuses(DOMAIN, -1, 401), (502, "gateway_refused_us")),
        (payhere.says(HTML, 502, kind="text/html"), (502, "gateway_bad_reply")),
        (payhere.says(HTML, 200, kind="text/html"), (502, "gateway_bad_reply")),
        (payhere.says({"status": 1, "msg": "ok", "data": 1}), (502, "gateway_bad_reply")),
        (payhere.says({"status": 9, "msg": "ok", "data": []}), (502, "gateway_bad_reply")),
        (payhere.breaks_off, (502, "gateway_bad_reply")),
        (payhere.floods, (502, "gateway_bad_reply")),
        (payhere.refuses("Internal error", -1, 500), (502, "gateway_bad_reply")),
    ],
    ids=["unknown", "unknown 400", "auth", "domain", "html 502", "html 200", "shape", "status", "half", "flood", "500"],
)
def test_a_reads_replies(scene: Scene, path: str, upstream: str, behaviour: Behaviour, answer: tuple[int, str]) -> None:
    """A complete refusal of a read is 404 with its words; what can't be read is 502, never an empty list."""
    number = fresh_number()
    scene.gateway.script(upstream.format(id=number), number, behaviour)
    reply = scene.client.at(spared_account()).get(path.format(id=number))
    assert_refused(reply, *answer)


def test_an_order_without_payments_is_404_with_an_empty_list(scene: Scene) -> None:
    """An order that was never paid is 404; `data` is still a list, so that a client that iterates doesn't fall."""
    reply = scene.client.get(f"payments/{fresh('order')}")
    assert_refused(reply, 404, "not_found")
    assert (reply.json["msg"], reply.json["data"]) == ("No payments found", [])


@pytest.mark.parametrize("http_status", [401, 200])
def test_an_expired_token_is_renewed_and_the_call_sent_once_more(scene: Scene, http_status: int) -> None:
    """Exactly two calls, the second with another token: a token's end costs the customer nothing."""
    order_id = fresh("order")

    def denies(asked: Asked, to: Conversation) -> None:
        to.write(
            http_status,
            f'{{"error":"invalid_token","error_description":"Invalid access token: {asked.token}"}}'.encode(),
        )

    scene.gateway.script(payhere.CHARGE, order_id, denies)
    reply = scene.client.charge(charge_body(order_id))
    assert reply.status == 200, str(reply)
    first, second = scene.gateway.calls(payhere.CHARGE, order_id)
    assert (first.body, first.token != second.token) == (second.body, True)


def test_a_token_that_is_denied_twice_ends_it(scene: Scene) -> None:
    """No third call; nothing was executed, so the same request may come again and then succeeds."""
    order_id, key = fresh("order"), fresh("key")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.denies_the_token, payhere.denies_the_token)
    assert_refused(scene.client.charge(charge_body(order_id), key=key), 502, "gateway_refused_us")
    assert scene.gateway.count(payhere.CHARGE, order_id) == 2
    assert scene.client.charge(charge_body(order_id), key=key).status == 200


def test_a_read_renews_an_expired_token_too(scene: Scene) -> None:
    """A read is sent once more with a fresh token."""
    order_id = fresh("order")
    answer = payhere.says(payhere.found(payhere.payment(order_id)))
    scene.gateway.script(payhere.SEARCH, order_id, payhere.denies_the_token, answer)
    assert scene.client.get(f"payments/{order_id}").status == 200
    assert scene.gateway.count(payhere.SEARCH, order_id) == 2


def test_a_refused_application_is_502_and_nothing_is_charged(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A token that we can't get is our trouble: the charge was never sent."""
    settings = account("gateway", scene.gateway.base_url, APP_ID=fresh("app"))
    app = settings["PAYRELAY_GATEWAYS__GATEWAY__APP_ID"]
    with_refusal = payhere.says({"error": "invalid_client", "error_description": "Bad client credentials"}, 401)
    scene.gateway.script(payhere.TOKEN, app, with_refusal, with_refusal)
    program = Program(tmp_path_factory.mktemp("refused"), settings)
    client = program.client(program.new_key("shop"))
    program.start()
    body = charge_body()
    reply = replace(client, port=program.port).charge(body)
    program.stop()
    assert_refused(reply, 502, "gateway_refused_us")
    assert not scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))


def test_a_charge_that_hangs_is_unknown_after_its_time(scene: Scene) -> None:
    """TIMEOUT_S ends the waiting, not the charge: 202 with where and when to ask, and a repeat sends nothing."""
    order_id, key = fresh("order"), fresh("key")
    held = scene.gateway.hold(payhere.CHARGE, order_id)
    hasty = scene.client.at("hasty")
    reply = hasty.charge(charge_body(order_id), key=key)
    again = hasty.charge(charge_body(order_id), key=key)
    held.released.set()
    assert_unknown(scene, reply, {"unknown"})
    assert again.status == 202, str(again)
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


def test_a_read_that_hangs_is_not_a_missing_payment(scene: Scene) -> None:
    """A slow gateway is told as such: 404 would be a lie."""
    order_id = fresh("order")
    held = scene.gateway.hold(payhere.SEARCH, order_id)
    reply = scene.client.at("hasty").get(f"payments/{order_id}")
    held.released.set()
    assert reply.status in {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE}, str(reply)
    assert_envelope(reply)


def test_a_charge_that_was_cut_is_not_sent_again(scene: Scene) -> None:
    """The gateway read it and hung up: the money may have moved, so a repeat asks and doesn't send."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    first, second = scene.client.charge(charge_body(order_id)), scene.client.charge(charge_body(order_id))
    assert (first.status, second.status) == (202, 202), f"{first} {second}"
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


@pytest.fixture(scope="module")
def absent() -> GatewayDouble:
    """A gateway whose address refuses connections until it is told to listen."""
    double = GatewayDouble()
    double.port = free_port()
    return double


@pytest.fixture
def lonely(tmp_path_factory: pytest.TempPathFactory, absent: GatewayDouble) -> Iterator[Scene]:
    """A service whose gateway isn't there."""
    program = Program(tmp_path_factory.mktemp("lonely"), settings_for(absent))
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=absent, client=program.client(key))
    program.stop()
    absent.leave()


def test_an_absent_gateway_is_503_and_the_same_key_works_later(lonely: Scene) -> None:
    """No connection, nothing sent, nothing kept: when the gateway is back the same request is charged, once."""
    body, key = charge_body(), fresh("key")
    for _ in range(2):
        reply = lonely.client.charge(body, key=key)
        assert_refused(reply, 503, "gateway_unreachable")
        assert reply.error["retry"] in {"same_key", "after"}
    lonely.gateway.listen()
    reply = lonely.client.charge(body, key=key)
    assert (reply.status, reply.header("idempotent-replayed")) == (200, None), str(reply)
    assert lonely.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_an_absent_gateway_is_503_to_a_read(lonely: Scene) -> None:
    """A read says the same; and the service itself is still ready."""
    assert_refused(lonely.client.get(f"payments/{fresh('order')}"), 503, "gateway_unreachable")
    assert lonely.client.send("GET", "/health/ready").status == 200


def test_an_equal_amount_in_other_digits_is_a_success(scene: Scene) -> None:
    """345.67 asked, 345.670 answered: equal by value."""
    order_id = fresh("order")
    body = charge_body(order_id, amount=Raw(text="345.60"))
    scene.gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(amount=345.6))
    assert scene.client.charge(body).status == 200


@pytest.mark.parametrize("path", ["payments/{id}", "subscriptions/{id}/payments"])
def test_a_positive_read_can_be_repeated_without_asking(scene: Scene, path: str) -> None:
    """`Cache-Control: no-cache` insists on the gateway's own word; without it a kept answer tells its `Age`."""
    number = fresh_number()
    upstream = payhere.SEARCH if path.startswith("payments") else payhere.SUBSCRIPTIONS + f"/{number}/payments"
    answer = payhere.says(payhere.found(payhere.payment(number)))
    scene.gateway.script(upstream, number, answer, answer)
    assert scene.client.get(path.format(id=number)).status == 200
    before = scene.gateway.count(upstream, number)
    reply = scene.client.get(path.format(id=number), [("Cache-Control", "no-cache")])
    assert reply.status == 200, str(reply)
    assert scene.gateway.count(upstream, number) == before + 1


@pytest.mark.parametrize("name", ["HTML with 502", "a cut after reading"])
def test_a_retry_reads_the_payments_first(scene: Scene, name: str) -> None:
    """What was paid before must be known before: when that can't be read, 503 and no retry is sent."""
    number = fresh_number()
    scene.gateway.script(f"subscription/{number}/payments", number, UNREADABLE[name], UNREADABLE[name])
    reply = scene.client.post(f"subscriptions/{number}/retry")
    assert reply.status == HTTPStatus.SERVICE_UNAVAILABLE, str(reply)
    assert_envelope(reply)
    assert not scene.gateway.calls(payhere.RETRY, number)
