import pytest

from payrelay_simulator import Call, Caller, Merchant, Outcome, Simulator, Switches, World
from payrelay_simulator.tokens import TOKENS_KEPT_MAX, basic_authorization

EXPIRED, UNKNOWN = "Access token expired: ", "Invalid access token: "


def token_call(world: World, authorization: str | None, body: bytes, content_type: str) -> Outcome:
    """Ask for a token in a particular way."""
    path = "/merchant/v1/oauth/token"
    return world.handle(
        Call(method="POST", path=path, authorization=authorization, content_type=content_type, body=body)
    )


FORM = "application/x-www-form-urlencoded"
GRANT = b"grant_type=client_credentials"


def test_token_answer_has_the_documented_fields(caller: Caller) -> None:
    """A fresh token lives for one second less than it is told to, as documented."""
    document = caller.sign_in().document

    assert list(document) == ["access_token", "token_type", "expires_in", "scope"]
    assert (document["token_type"], document["expires_in"], document["scope"]) == ("bearer", 599, "SANDBOX")


def test_unexpired_token_is_returned_again_with_less_time(world: World, caller: Caller) -> None:
    """Asking again does not renew: a client that counts on a full life would be caught."""
    first = caller.sign_in().document
    world.clock.advance(100)
    second = caller.sign_in().document

    assert second == {**first, "expires_in": 499}


def test_new_token_each_time_by_switch(world: World, caller: Caller) -> None:
    """Where the gateway does not share tokens, both stay good."""
    world.switches = Switches(access_tokens="new")
    first = caller.sign_in().document["access_token"]

    assert caller.sign_in().document["access_token"] != first


def test_expired_token_is_told_once_and_then_unknown(world: World, caller: Caller) -> None:
    """The gateway forgets an expired token when it is first presented; a client must understand both texts."""
    token = caller.sign_in().document["access_token"]
    world.clock.advance(600)

    descriptions = [caller.get("subscription").document["error_description"] for _ in range(2)]
    assert descriptions == [EXPIRED + token, UNKNOWN + token]


def test_token_is_good_until_its_last_second(world: World, caller: Caller) -> None:
    """Expiry is not early."""
    caller.sign_in()
    world.clock.advance(599)

    assert caller.get("subscription").document["status"] == 1


@pytest.mark.parametrize("http_status", [401, 200])
def test_invalid_token_status_is_switchable(world: World, caller: Caller, http_status: int) -> None:
    """The status of this refusal is not documented, so a client is tested with both."""
    world.switches = Switches(invalid_token_http=401 if http_status == 401 else 200)
    caller.authorization = "Bearer nonsense"
    outcome = caller.get("subscription")

    assert outcome.reply is not None
    assert outcome.reply.http_status == http_status
    assert outcome.document == {"error": "invalid_token", "error_description": UNKNOWN + "nonsense"}


@pytest.mark.parametrize(
    ("body", "content_type", "error", "http_status"),
    [
        (GRANT, "application/json", None, 415),
        (b"", FORM, "invalid_request", 400),
        (b"grant_type=password", FORM, "unsupported_grant_type", 400),
        (b"\xff", FORM, "invalid_request", 400),
    ],
)
def test_wrong_grant_is_refused(
    world: World, body: bytes, content_type: str, error: str | None, http_status: int
) -> None:
    """Only the documented form gets a token."""
    outcome = token_call(world, basic_authorization(world.merchants[0]), body, content_type)

    assert outcome.reply is not None
    assert (outcome.document.get("error"), outcome.reply.http_status) == (error, http_status)


@pytest.mark.parametrize("authorization", [None, "Basic", "Basic !", "Basic eDp5", "Bearer x", "Basic /w=="])
def test_bad_client_gets_no_token(world: World, authorization: str | None) -> None:
    """Whatever is wrong with the credentials, the answer is a refusal in OAuth's form."""
    outcome = token_call(world, authorization, GRANT, FORM)

    assert outcome.reply is not None
    assert outcome.reply.http_status == 401
    assert outcome.document["error"] in {"invalid_client", "unauthorized"}


def test_bad_client_in_the_envelope_by_switch(world: World) -> None:
    """The gateway's own demonstration expects a msg here."""
    world.switches = Switches(bad_client="envelope")

    assert token_call(world, "Basic eDp5", GRANT, FORM).document["msg"] == "Authentication error"


def test_call_without_token_is_refused(world: World) -> None:
    """No header, no data."""
    outcome = world.handle(Call(method="GET", path="/merchant/v1/subscription"))

    assert outcome.document["error"] == "unauthorized"


def test_merchants_see_only_their_own() -> None:
    """Two API keys share the simulator and nothing else."""
    merchants = [
        Merchant(app_id=f"app{n}", app_secret="s", merchant_id=f"120000{n}", merchant_secret="m") for n in range(2)
    ]
    world = Simulator(*merchants).world
    second = Caller(world, merchants[1])
    second.sign_in()

    assert second.get("subscription").document["msg"] == "Found 0 subscriptions"
    assert "app_secret" not in repr(merchants[0])


def test_tokens_that_nobody_presents_are_forgotten_in_the_end(world: World, caller: Caller) -> None:
    """A simulator that runs for months does not grow with every token."""
    world.switches = Switches(access_tokens="new", rate_limit_calls=0)
    caller.sign_in()
    oldest = caller.authorization
    for _ in range(TOKENS_KEPT_MAX):
        caller.sign_in()
    caller.authorization = oldest

    assert caller.get("subscription").document["error_description"].startswith(UNKNOWN)
