"""Who may do what: keys, scopes, limits, and what is said to those who may not."""

import re

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import (
    Scene,
    assert_refused,
    capture_body,
    charge_body,
    fresh,
    fresh_number,
    refund_body,
)
from tests.scenarios.waiting import until

PATHS = ["payments/1", "subscriptions", "subscriptions/1", "subscriptions/1/payments", "operations", "nothing"]


def assert_unauthenticated(reply: Reply) -> None:
    """401 in the envelope, with the scheme that is wanted."""
    assert_refused(reply, 401, "unauthenticated")
    assert (reply.header("www-authenticate") or "").lower().startswith("bearer"), str(reply.headers)


@pytest.mark.parametrize("path", PATHS)
def test_nothing_answers_without_a_credential(scene: Scene, path: str) -> None:
    """Not even which routes and accounts exist."""
    assert_unauthenticated(scene.client.holding(None).get(path))
    assert_unauthenticated(scene.client.holding(None).charge(charge_body()))


def wrong_keys(key: str) -> list[str]:
    """Keys that look right and are not."""
    environment, identity, secret = key.removeprefix("prk_").split("_", 2)
    other = "A" if secret[0] != "A" else "B"
    return [
        key[:-1],
        key + "A",
        f"prk_{environment}_{identity}_{other}{secret[1:]}",
        f"prk_{environment}_{identity[::-1]}_{secret}",
        f"prk_{environment}_{identity}_",
        f"prk_{environment}_{identity}",
        "prk_" + "x" * 5000,
        key.swapcase(),
        "",
        "Bearer",
    ]


@pytest.mark.parametrize("place", range(10))
def test_a_wrong_key_is_401(scene: Scene, place: int) -> None:
    """Cut, lengthened, changed in one character, another's id: none is let in."""
    key = scene.client.key
    assert key is not None
    assert_unauthenticated(scene.client.holding(wrong_keys(key)[place]).get("payments/1"))


@pytest.mark.parametrize(
    "form", ["{key}", "Basic {key}", "bearer{key}", "Bearer {key} {key}", "Bearer {key},", "Token {key}"]
)
def test_another_scheme_is_401(scene: Scene, form: str) -> None:
    """`Authorization: Bearer` and one key."""
    fields = [("Authorization", form.format(key=scene.client.key))]
    assert_unauthenticated(scene.client.holding(None).get("payments/1", fields))


def test_the_scheme_is_taken_in_any_case(scene: Scene) -> None:
    """RFC 9110: the scheme's case doesn't matter."""
    fields = [("Authorization", f"bearer {scene.client.key}")]
    assert scene.client.holding(None).get("operations", fields).status == 200


def test_a_key_in_the_query_is_no_credential(scene: Scene) -> None:
    """Addresses end in logs: a key there is not looked at."""
    assert_unauthenticated(scene.client.holding(None).get(f"operations?access_token={scene.client.key}"))


def test_a_key_has_the_printed_form(scene: Scene) -> None:
    """`prk_<env>_<id>_<secret+checksum>`: scanners of secrets can find it."""
    assert re.fullmatch(r"prk_[a-z]+_[0-9A-Za-z]+_[0-9A-Za-z]{30,}", scene.client.key or "")


def revoke(program: Program, key: str) -> None:
    """Revokes the key by its id."""
    done = program.run("keys", "revoke", key.split("_")[2])
    assert done.returncode == 0, done.stderr


def test_a_revoked_key_is_401_soon(scene: Scene) -> None:
    """Revoked by a command while the server runs: within seconds the key is nothing, without a restart."""
    client = scene.another()
    assert client.get("operations").status == 200
    revoke(scene.program, client.key or "")
    until(lambda: client.get("operations").status == 401, "the key is refused", deadline_s=5)
    assert_unauthenticated(client.get("operations"))


SCOPES = {
    "payments:read": ("GET", "payments/{id}"),
    "payments:charge": ("POST", "payments/charge"),
    "payments:capture": ("POST", "payments/capture"),
    "payments:refund": ("POST", "payments/refund"),
    "subscriptions:read": ("GET", "subscriptions/{id}"),
    "subscriptions:retry": ("POST", "subscriptions/{id}/retry"),
    "subscriptions:cancel": ("DELETE", "subscriptions/{id}"),
    "operations:read": ("GET", "operations"),
}


def call(client: Client, scope: str) -> Reply:
    """The call that the scope allows."""
    method, path = SCOPES[scope]
    path = path.format(id=fresh_number())
    if method == "GET":
        return client.get(path)
    if method == "DELETE":
        return client.delete(path)
    make = {"payments:charge": charge_body, "payments:capture": capture_body, "payments:refund": refund_body}.get(scope)
    return client.post(path, make() if make else None)


@pytest.fixture(scope="module")
def narrow(scene: Scene) -> dict[str, Client]:
    """For each scope a caller that has it alone."""
    return {scope: scene.another("--scope", scope) for scope in SCOPES}


@pytest.mark.parametrize("held", SCOPES)
@pytest.mark.parametrize("wanted", SCOPES)
def test_a_scope_allows_its_own_calls_and_no_other(narrow: dict[str, Client], held: str, wanted: str) -> None:
    """Each key does what its scope names: 403 for all else, before anything is sent."""
    reply = call(narrow[held], wanted)
    if held == wanted:
        assert reply.status in {200, 404}, str(reply)
    else:
        assert_refused(reply, 403, "forbidden")


def test_reading_subscriptions_also_lists_them(narrow: dict[str, Client]) -> None:
    """One scope for the three reads."""
    client = narrow["subscriptions:read"]
    assert client.get("subscriptions").status == 200
    assert client.get(f"subscriptions/{fresh_number()}/payments").status == 200


def test_the_default_scopes_are_all_but_the_auditors(scene: Scene) -> None:
    """A key that was made without naming scopes does the nine operations and reads its own."""
    client = scene.another()
    assert {scope: call(client, scope).status for scope in SCOPES if scope != "payments:read"} == {
        scope: 200 for scope in SCOPES if scope != "payments:read"
    }


def test_a_charge_over_the_keys_largest_amount_is_403(scene: Scene) -> None:
    """A stolen key's damage has a limit; the limit itself is allowed."""
    client = scene.another("--max-amount", "100.00")
    assert client.charge(charge_body(amount=Raw(text="100.00"))).status == 200
    body = charge_body(amount=Raw(text="100.01"))
    assert_refused(client.charge(body), 403, "forbidden")
    assert not scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))


def test_a_key_over_its_rate_is_429(scene: Scene) -> None:
    """Its own quota: with `Retry-After` and the RateLimit fields, so that a client can behave."""
    client = scene.another("--rate", "3/1h")
    replies = [client.get("operations") for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429], str(replies[-1])
    assert_refused(replies[-1], 429, "rate_limited")
    assert int(replies[-1].header("retry-after") or "") > 0
    assert [name for name, _ in replies[-1].headers if name.lower().startswith("ratelimit")]
    assert replies[-1].error["retry"] == "after"


def test_a_key_for_one_account_is_403_at_another(scene: Scene) -> None:
    """A key can be bound to accounts."""
    client = scene.another("--account", "gateway")
    assert client.charge(charge_body()).status == 200
    body = charge_body()
    assert_refused(client.at("second").charge(body), 403, "forbidden")
    assert not scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))


def test_who_tries_keys_is_429_and_a_good_key_is_let_in(own: Scene) -> None:
    """Twenty wrong tries a minute from one address hear what is wrong, all others when to come again."""
    wrong = own.client.holding(wrong_keys(own.client.key or "")[2])
    assert [wrong.get("operations").status for _ in range(30)] == [401] * 20 + [429] * 10
    last = wrong.charge(charge_body())
    assert_refused(last, 429, "rate_limited")
    assert 0 < int(last.header("retry-after") or "") <= 60
    assert [name for name, _ in last.headers if name.lower().startswith("ratelimit")]
    assert own.client.charge(charge_body()).status == 200
    assert_unauthenticated(own.client.holding(None).get("operations"))
    text = own.client.holding(None).send("GET", "/metrics").body.decode()
    assert 'payrelay_failed_credentials_total{reason="wrong"} 31.0' in text


def test_failed_credentials_never_lock_out_a_good_one(scene: Scene) -> None:
    """A hundred wrong tries from the same address: the right key still works."""
    key = scene.client.key or ""
    wrong = scene.client.holding(wrong_keys(key)[2])
    assert {wrong.get("operations").status for _ in range(100)} <= {401, 429}
    assert scene.client.get("operations").status == 200


def test_an_expired_key_is_401(scene: Scene) -> None:
    """After its end a key is nothing."""
    client = scene.another("--expires", "1s")
    statuses: list[int] = []

    def is_refused() -> bool:
        statuses.append(client.get("operations").status)
        return statuses[-1] == 401

    until(is_refused, "the key expires")
    assert statuses[0] in {200, 401}


def test_two_keys_of_one_name_are_one_principal(scene: Scene) -> None:
    """Rotation: the new key of the same name sees and replays what the old one did."""
    name, key, body = fresh("principal"), fresh("key"), charge_body()
    old = scene.program.client(scene.program.new_key(name))
    new = scene.program.client(scene.program.new_key(name))
    first = old.charge(body, key=key)
    again = new.charge(body, key=key)
    assert (again.header("idempotent-replayed"), again.body) == ("true", first.body)
