"""Phones that come with their identity provider's own token, over sockets."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from joserfc.jwk import ECKey
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.identity_provider import ISSUER, IdentityProvider
from tests.scenarios.phones import Person, arrive, data
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for
from tests.scenarios.waiting import until

WRONG_KEYS = 25  # more than an address may send
PRICE: dict[str, Any] = {"amount": "345.67", "currency": "LKR"}
SCOPES = "payments:charge,payments:read,operations:read,customers:read,checkouts:read"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    """The provider that the app's users sign in with."""
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def shop(folder: Path, gateway: GatewayDouble, provider: IdentityProvider) -> Iterator[Scene]:
    """A shop that takes its tokens, each for one order."""
    environment = settings_for(gateway) | {"PAYRELAY_PUBLIC_URL": "https://pay.example"}
    environment |= provider.settings(
        ORDER_CLAIM="order", AMOUNT_CLAIM="amount", CURRENCY_CLAIM="currency", SCOPES=SCOPES, ACCOUNTS="gateway"
    )
    program = Program(folder, environment)
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest.fixture
def anna(shop: Scene) -> Person:
    """A person whose card is stored under the name that the provider knows."""
    return arrive(shop.client)


def test_a_person_pays_with_the_providers_token(shop: Scene, provider: IdentityProvider, anna: Person) -> None:
    """Nothing is asked of the shop's server: who it is says the provider, which card that is we know."""
    order_id = fresh("order")
    phone = shop.client.holding(provider.token(anna.reference, order=order_id, **PRICE))
    body = charge_body(order_id)
    del body["customer_token"]
    paid = phone.charge(body, key="pay")

    assert paid.status == 200, str(paid)
    assert data(phone.get("operations/by-key/pay"))["order_id"] == order_id
    assert data(phone.get(f"customers/{anna.customer_id}"))["reference"] == anna.reference
    asked = shop.gateway.calls("payment/charge", order_id)
    assert [each.json["customer_token"].startswith("cus_") for each in asked] == [False]


def test_a_repeat_does_not_charge_another_card(shop: Scene, provider: IdentityProvider, anna: Person) -> None:
    """The answer is lost, a second card comes, and the app sends the same again: it gets the answer of one payment."""
    order_id = fresh("order")
    phone = shop.client.holding(provider.token(anna.reference, order=order_id, **PRICE))
    body = charge_body(order_id)
    del body["customer_token"]
    first = phone.charge(body, key="once")
    assert first.status == 200
    data(shop.client.post("customers", {"customer_token": fresh("T"), "reference": anna.reference}))
    repeat = phone.charge(body, key="once")

    assert (repeat.status, repeat.body) == (200, first.body)
    assert shop.gateway.count("payment/charge", order_id) == 1


@pytest.mark.parametrize("claims", [{"amount": 1.0}, {"amount": 345.68}, {"currency": "USD"}], ids=str)
def test_a_person_pays_what_the_provider_names(
    shop: Scene, provider: IdentityProvider, anna: Person, claims: dict[str, Any]
) -> None:
    """And nothing less, and not twice: the app has no say in the price."""
    order_id = fresh("order")
    body = charge_body(order_id)
    del body["customer_token"]
    other = shop.client.holding(provider.token(anna.reference, **({"order": order_id} | PRICE | claims)))
    right = shop.client.holding(provider.token(anna.reference, order=order_id, **PRICE))

    assert_refused(other.charge(body), 403, "forbidden")
    assert right.charge(body, key="1").status == 200
    assert_refused(right.charge(body, key="2"), 409, "conflict")
    assert shop.gateway.count("payment/charge", order_id) == 1


@pytest.mark.parametrize("missing", ["order", "amount", "currency"])
def test_a_token_without_a_price_reads_and_pays_nothing(
    shop: Scene, provider: IdentityProvider, anna: Person, missing: str
) -> None:
    """A user who only looks on has no order; such a token is a good one, and counts as no wrong key."""
    order_id = fresh("order")
    claims = {name: value for name, value in ({"order": order_id} | PRICE).items() if name != missing}
    phone = shop.client.holding(provider.token(anna.reference, **claims))

    for _ in range(WRONG_KEYS):
        assert data(phone.get(f"customers/{anna.customer_id}"))["reference"] == anna.reference
    body = charge_body(order_id)
    del body["customer_token"]
    assert_refused(phone.charge(body), 403, "forbidden")
    if missing == "order":
        assert data(phone.get(f"operations/{anna.operation_id}"))["order_id"] == anna.paid_order
    assert shop.gateway.count("payment/charge", order_id) == 0


def test_a_person_sees_nothing_of_another(shop: Scene, provider: IdentityProvider, anna: Person) -> None:
    """Whoever signs in is that person and nobody else; one that has no card yet has nothing at all."""
    berta = arrive(shop.client)
    for person in (berta.reference, fresh("nobody-yet"), anna.customer_id):
        phone = shop.client.holding(provider.token(person, order=fresh("order")))
        assert_refused(phone.get(f"operations/{anna.operation_id}"), 404, "not_found")
        assert_refused(phone.get(f"customers/{anna.customer_id}"), 404, "not_found")
        assert_refused(phone.get(f"payments/{anna.paid_order}"), 404, "not_found")
        assert_refused(phone.get(f"checkouts/{anna.checkout_id}"), 404, "not_found")
        assert phone.get("operations").json["data"] == []
        assert_refused(phone.charge(charge_body(anna.open_order, customer_token=anna.customer_id)), 403, "forbidden")
    assert shop.gateway.count("payment/charge", anna.open_order) == 0


def test_nothing_tells_who_a_person_is_once_the_customer_is_erased(
    shop: Scene, provider: IdentityProvider, anna: Person
) -> None:
    """Neither the name nor a hash that one could make of a guessed name lies in the database, or stands in the log."""
    order_id = fresh("order")
    phone = shop.client.holding(provider.token(anna.reference, order=order_id, **PRICE))
    body = charge_body(order_id)
    del body["customer_token"]
    assert phone.charge(body, key="pay").status == 200
    shown = shop.client.get(f"operations?order_id={order_id}").json["data"][0]
    assert data(shop.client.get(f"operations/by-key/{quote(shown['idempotency_key'], safe='')}"))["id"] == shown["id"]
    assert data(shop.client.get(f"operations/by-key/reference%2F{anna.reference}%2Fpay"))["id"] == shown["id"]

    assert data(shop.client.post(f"customers/{anna.customer_id}/erase"))["files_cleared"]
    guesses = (anna.reference, f"reference/{anna.reference}", f"{ISSUER}\0{anna.reference}")
    hashes = [hashlib.sha256(guess.encode()).hexdigest()[:16] for guess in guesses]
    told = [anna.reference, *hashes]
    with closing(sqlite3.connect(shop.program.folder / "payrelay.db")) as database:
        rows = "\n".join(database.iterdump())
    assert [each for each in told if each in rows] == []
    until(lambda: "idp_" in shop.program.log(), "the line of the phone's request")
    log = shop.program.log()
    assert [each for each in told if each in log] == []
    assert shop.program.run("audit", "verify").returncode == 0


def test_a_provider_allows_what_the_settings_say(shop: Scene, provider: IdentityProvider, anna: Person) -> None:
    """Whatever else it writes into its tokens, and on no other account."""
    phone = shop.client.holding(
        provider.token(anna.reference, order=anna.open_order, scope="payments:refund events:read", admin=True)
    )

    assert_refused(phone.post("payments/refund", {"payment_id": "1", "description": "x"}), 403, "forbidden")
    assert_refused(phone.get(f"events/stream?subject=checkout:{anna.checkout_id}"), 403, "forbidden")
    assert_refused(phone.post("client-tokens", {"order_id": anna.open_order}), 403, "forbidden")
    assert_refused(phone.at("second").get("operations"), 403, "forbidden")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example/"},
        {"aud": "another-app"},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"order": ""},
        {"amount": "free"},
        {"sub": ""},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_is_401(shop: Scene, provider: IdentityProvider, claims: dict[str, Any]) -> None:
    """Signed by the right provider, and still nothing here."""
    phone = shop.client.holding(provider.token("user-1", **({"order": "A-1"} | PRICE | claims)))
    assert_refused(phone.get("operations"), 401, "unauthenticated")


def test_a_token_that_somebody_else_signed_is_401(shop: Scene, provider: IdentityProvider) -> None:
    """With a key of its own under the provider's name for it, or under a name that the provider doesn't know."""
    stranger = ECKey.generate_key("P-256", {"kid": "first"})
    for key in ("first", "unheard-of"):
        phone = shop.client.holding(provider.token("user-1", key=key, signer=stranger, order="A-1"))
        assert_refused(phone.get("operations"), 401, "unauthenticated")


def test_a_provider_that_is_down_shuts_nobody_out(shop: Scene, provider: IdentityProvider, anna: Person) -> None:
    """Its keys are known; a new key of its waits until it is up again, and then is found within seconds."""
    phone = shop.client.holding(provider.token(anna.reference, order=anna.open_order))
    assert phone.get("operations").status == 200
    provider.is_up = False
    provider.add_key("second")
    try:
        other = shop.client.holding(provider.token(anna.reference, order=anna.paid_order))
        assert other.get("operations").status == 200
    finally:
        provider.is_up = True
    newer = shop.client.holding(provider.token(anna.reference, key="second", order=anna.open_order))
    until(lambda: newer.get("operations").status == 200, "the new key is known", deadline_s=15)
    assert phone.get("operations").status == 200


def test_keys_and_client_tokens_go_on_beside_it(shop: Scene, anna: Person) -> None:
    """A provider's tokens stand in for client tokens; they take nothing's place."""
    issued: Client = shop.client.holding(
        data(shop.client.post("client-tokens", {"customer_id": anna.customer_id}))["token"]
    )

    assert issued.get("operations").status == 200
    assert shop.client.get("operations").status == 200


def test_before_the_first_keys_the_answer_is_503(tmp_path: Path, gateway: GatewayDouble) -> None:
    """An app must not throw a good token away because we couldn't reach its provider."""
    with IdentityProvider() as provider:
        provider.is_up = False
        program = Program(tmp_path, settings_for(gateway) | provider.settings()).start()
        try:
            phone = program.client(provider.token("user-1"))
            assert_refused(phone.get("operations"), 503, "unavailable")
        finally:
            program.stop()
