from dataclasses import replace
from datetime import date
from urllib.parse import urlsplit

import msgspec
import pytest
from tests.flows.hosted import (
    LIFE_S,
    PUBLIC_URL,
    current,
    data_of,
    hosting,
    new,
    opened,
    secret_of,
    seen,
    told,
)
from tests.flows.world import World, asked
from tests.samples import ASKED

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.credential import Bound
from payrelay.core.answers import REPLAYED
from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, CheckoutEvent, CheckoutState, advance
from payrelay.core.checkouts.hosted_payment import CheckoutKind, Plan
from payrelay.core.gateways.pauses import Pause
from payrelay.errors import Code, FieldError, Refusal
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.checkouts.visit_checkout import visit_checkout
from payrelay.gateways.payhere.wire.checkout_forms import CURRENCIES
from payrelay.store.gateways.pauses import Pauses

PRICE = Allowance(amount_minor=100_000, currency="LKR")
PLAN = Plan(recurrence="1 Month", duration="1 Year", startup_fee_minor=50_000)


async def test_it_answers_with_what_was_asked_its_address_and_its_form(world: World) -> None:
    """One address to open, and the same form for those who post it on their own."""
    data = data_of(await open_checkout(hosting(world), asked(), new(customer_reference="user-1")))
    page = f"{PUBLIC_URL}/gateway/checkouts/{data['id']}/"

    assert (data["kind"], data["state"], data["order_id"], data["amount"]) == ("payment", "open", "A-1", 1000.0)
    assert data["customer_reference"] == "user-1"
    assert data["expires_at"] == "2023-11-14T22:23:20.000Z"
    assert data["url"].startswith(page)
    assert data["form"]["action"] == "https://sandbox.payhere.lk/pay/checkout"
    assert data["form"]["fields"]["return_url"] == f"{data['url']}/return"
    assert data["form"]["fields"]["cancel_url"] == f"{data['url']}/cancel"
    assert data["form"]["fields"]["notify_url"] == f"{PUBLIC_URL}/gateway/notifications"
    assert data["form"]["fields"]["email"] == "saman@example.com"


async def test_opening_makes_no_event_and_sends_nothing(world: World) -> None:
    """Opening is no effect: the customer acts later."""
    await opened(hosting(world))

    assert (await told(world), world.account.sent, world.steps.passed) == ([], [], [])


async def test_no_two_pages_have_the_same_secret(world: World) -> None:
    """A secret is also long enough that it can't be guessed."""
    relay = hosting(world)
    urls = [
        data_of(await open_checkout(relay, asked(None), new(order_id=f"A-{number}")))["url"] for number in (1, 2, 3)
    ]
    secrets = {urlsplit(url).path.rpartition("/")[2] for url in urls}

    assert len(secrets) == 3
    assert {len(secret) for secret in secrets} == {32}


@pytest.mark.parametrize("key", ["k-1", None])
async def test_a_repeat_gets_the_same_checkout_again(world: World, key: str | None) -> None:
    """An app whose answer was lost sends the request again, with a key or without."""
    relay = hosting(world)
    first = await open_checkout(relay, asked(key), new())
    again = await open_checkout(relay, asked(key), new())

    assert data_of(again) == data_of(first)
    assert (first.headers, again.headers) == ((), (REPLAYED,))


async def test_a_repeat_of_a_finished_checkout_shows_its_state(world: World) -> None:
    """There is nothing left to open then."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    failed = advance(checkout, CheckoutEvent.FAILED, at_ms=1)
    assert failed is not None
    await relay.checkouts.change(failed, has_event=True)
    data = data_of(await open_checkout(relay, asked("k-1"), new()))

    assert (data["id"], data["state"], data["url"], data["form"]) == (checkout.id, "failed", None, None)


@pytest.mark.parametrize(
    "other",
    [new(amount_minor=1), new(expires_in_s=60), new(customer_reference="x"), new(return_to="myshop://x")],
)
async def test_a_key_with_another_body_is_refused(world: World, other: object) -> None:
    """One of the two requests is a mistake, and Payrelay can't know which."""
    relay = hosting(world)
    await opened(relay, key="k-1")
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked("k-1"), msgspec.convert(other, type(new())))

    assert refused.value.code is Code.IDEMPOTENCY_MISMATCH


@pytest.mark.parametrize("key", ["k-2", None])
async def test_an_order_has_one_checkout(world: World, key: str | None) -> None:
    """A customer who has two pages pays twice."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(key), new(amount_minor=5))

    assert (refused.value.code, refused.value.checkout_id) == (Code.IN_PROGRESS, checkout.id)


async def test_an_order_that_was_paid_at_the_last_moment_is_not_free(world: World) -> None:
    """Its time is over, and the worker hasn't ended it yet: with another checkout now, the customer could pay twice."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    await visit_checkout(relay, "gateway", checkout.id, await secret_of(relay, checkout))
    world.clock.passed_ms += LIFE_S * 1000 + LEFT_OPEN_MS
    world.account.observations.append(seen())
    with pytest.raises(Refusal, match="which is completed") as refused:
        await open_checkout(relay, asked("k-2"), new())

    assert refused.value.code is Code.CONFLICT
    assert (await current(relay, checkout.id)).payment_id == "320025000001"


async def test_another_principal_learns_no_id(world: World) -> None:
    """Another principal may know that the order id is taken, and nothing else."""
    relay = hosting(world)
    await opened(relay)
    with pytest.raises(Refusal, match=r"^this order id is taken; use another one$"):
        await open_checkout(relay, asked(None, principal="other"), new())


async def test_an_expired_checkout_frees_its_order(world: World) -> None:
    """Even if the worker has not come round yet."""
    relay = hosting(world)
    first = await opened(relay)
    world.clock.passed_ms += LIFE_S * 1000
    second = await opened(relay)

    assert second.id != first.id
    assert (await current(relay, first.id)).state is CheckoutState.EXPIRED
    assert await told(world) == ["checkout.expired"]


async def test_without_a_repeat_window_an_equal_request_is_another_one(world: World) -> None:
    """As the setting says for everything else."""
    world.limit_to(None, unkeyed_ms=0)
    relay = hosting(world)
    await opened(relay)
    with pytest.raises(Refusal, match="which is open"):
        await open_checkout(relay, asked(None), new())


async def test_what_is_missing_here_is_named(world: World) -> None:
    """Whoever sets it up reads what to set."""
    relay = hosting(world)
    with pytest.raises(Refusal, match="PAYRELAY_PUBLIC_URL") as refused:
        await open_checkout(replace(relay, settings=replace(relay.settings, public_url=None)), asked(), new())
    assert refused.value.code is Code.NOT_CONFIGURED
    world.account.signer = None
    with pytest.raises(Refusal, match=r"PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_ID and .*__MERCHANT_SECRET"):
        await open_checkout(relay, asked(), new())


async def test_a_paused_account_opens_no_checkout(world: World) -> None:
    """Whoever paused it wants no new money to move; a repeat still finds what was opened before, and its page waits."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    pause = Pause(account="gateway", since_ms=1, reason="wrong prices in the shop", operator="ann")
    await Pauses(world.database).add(pause)
    world.clock.passed_ms += 5_000
    with pytest.raises(Refusal, match="paused") as refused:
        await open_checkout(relay, asked("k-2"), new(order_id="A-2"))

    assert refused.value.code is Code.UNAVAILABLE
    repeated = data_of(await open_checkout(relay, asked("k-1"), new()))
    assert (repeated["id"], repeated["form"]) == (checkout.id, None)
    assert await secret_of(relay, checkout) in repeated["url"]


@pytest.mark.parametrize("name", ["return_to", "cancel_to"])
async def test_a_link_that_is_not_allowed_is_refused(world: World, name: str) -> None:
    """The hosted page must not send a customer to a thief's site."""
    with pytest.raises(Refusal) as refused:
        await open_checkout(hosting(world), asked(), new(**{name: "https://evil.example/"}))

    assert [(field.path, field.msg) for field in refused.value.fields] == [
        (name, "is no link that PAYRELAY_RETURN_LINKS allows")
    ]


@pytest.mark.parametrize(
    ("member", "value", "path"),
    [
        ("auto_cancel", False, "auto_cancel"),
        ("max_retries", 3, "max_retries"),
        ("is_recovery_due", True, "is_recovery_due"),
        ("starts_on", date(2099, 1, 1), "recurring_start_date"),
    ],
)
async def test_what_only_live_accounts_know_is_refused_elsewhere(
    world: World, member: str, value: object, path: str
) -> None:
    """The gateway's sandbox has no answer to it that anybody could read."""
    relay = hosting(world)
    wanted = new(kind=CheckoutKind.RECURRING, plan=msgspec.structs.replace(PLAN, **{member: value}))
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(), wanted)
    assert [field.path for field in refused.value.fields] == [path]

    world.account.environment = "live"
    assert path in data_of(await open_checkout(relay, asked(), wanted))["form"]["fields"]


async def test_a_plan_does_not_begin_in_the_past(world: World) -> None:
    """By the day at the gateway: it is half past three in the night there already."""
    relay = hosting(world)
    world.account.environment = "live"
    for day, is_allowed in ((date(2023, 11, 14), False), (date(2023, 11, 15), True)):
        wanted = new(kind=CheckoutKind.RECURRING, plan=msgspec.structs.replace(PLAN, starts_on=day))
        if is_allowed:
            assert data_of(await open_checkout(relay, asked(), wanted))["form"]["fields"]["hash"]
        else:
            with pytest.raises(Refusal, match="recurring_start_date must not be in the past"):
                await open_checkout(relay, asked(), wanted)


async def test_a_limit_of_the_key_counts_the_first_payment(world: World) -> None:
    """A startup fee is money too."""
    relay = hosting(world)
    request = asked(amount_max_minor=149_999)
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, request, new(kind=CheckoutKind.RECURRING, plan=PLAN))

    assert refused.value.code is Code.FORBIDDEN
    assert data_of(await open_checkout(relay, request, new()))["id"]


async def test_an_approval_that_takes_nothing_is_within_every_limit(world: World) -> None:
    """No money moves."""
    wanted = new(kind=CheckoutKind.PREAPPROVAL, amount_minor=None)

    assert data_of(await open_checkout(hosting(world), asked(amount_max_minor=1), wanted))["amount"] is None


@pytest.mark.parametrize(
    ("bound", "members", "words"),
    [
        (Bound(customer_id="cus_1"), {}, "names no order"),
        (Bound(order_id="A-2"), {}, "for another order"),
        (Bound(order_id="A-1"), {}, "names no amount"),
        (Bound(order_id="A-1", allowance=PRICE), {"currency": "USD"}, "in LKR only"),
        (Bound(order_id="A-1", allowance=PRICE), {"amount_minor": 1}, "exactly"),
        (
            Bound(order_id="A-1", allowance=PRICE),
            {"kind": CheckoutKind.AUTHORIZATION},
            "type payment, not authorization",
        ),
        (Bound(order_id="A-1"), {"customer_reference": "user-2"}, "another customer"),
        (
            Bound(order_id="A-1", reference="user-1", keys_of="person/1"),
            {"customer_reference": "user-2"},
            "another customer",
        ),
    ],
)
async def test_a_client_token_opens_a_checkout_for_its_own_order_and_customer_only(
    world: World, bound: Bound, members: dict[str, object], words: str
) -> None:
    """Otherwise an approved card would be stored for another customer."""
    with pytest.raises(Refusal, match=words) as refused:
        await open_checkout(hosting(world), asked(bound=bound), new(**members))

    assert refused.value.code is Code.FORBIDDEN


async def test_a_checkout_opened_with_a_client_token_belongs_to_its_customer(world: World) -> None:
    """The token names the customer, not the app."""
    relay = hosting(world)
    bound = Bound(order_id="A-1", customer_id="cus_1", reference="user-1", allowance=PRICE)
    data = data_of(await open_checkout(relay, asked(bound=bound), new()))

    checkout = await current(relay, data["id"])
    assert (checkout.bound_customer_id, await relay.checkouts.reference_of(checkout)) == ("cus_1", "user-1")


@pytest.mark.parametrize(
    ("left_s", "asked_s", "life_s"), [(300, LIFE_S, 300), (3_600, LIFE_S, LIFE_S), (1, LIFE_S, 60), (None, 900, 900)]
)
async def test_a_page_of_an_app_ends_with_its_token(
    world: World, left_s: int | None, asked_s: int, life_s: int
) -> None:
    """An app that chose a day would keep its shop from the order for a day, also after its token was revoked."""
    relay, now_ms = hosting(world), world.clock.now_ms()
    bound = Bound(order_id="A-1", customer_id="cus_1", allowance=PRICE)
    app = asked(bound=bound, expires_at_ms=None if left_s is None else now_ms + left_s * 1000)
    first = data_of(await open_checkout(relay, app, new(expires_in_s=asked_s)))
    again = data_of(await open_checkout(relay, asked(bound=bound), new(expires_in_s=asked_s)))

    checkout = await current(relay, first["id"])
    assert checkout.expires_at_ms - now_ms == life_s * 1000
    assert again["id"] == first["id"], "a repeat with a shorter validity, or a newer token, is the same request"


async def test_a_page_of_a_key_may_outlive_the_key(world: World) -> None:
    """A server's key is replaced while its customers pay."""
    relay, now_ms = hosting(world), world.clock.now_ms()
    answer = await open_checkout(relay, asked(expires_at_ms=now_ms + 1_000), new())

    assert (await current(relay, data_of(answer)["id"])).expires_at_ms == now_ms + LIFE_S * 1000


def test_no_personal_data_is_printed() -> None:
    """A traceback goes into the log."""
    assert "Saman" not in repr(new())
    assert "Saman" not in repr(ASKED)


@pytest.mark.parametrize("kind", CheckoutKind)
@pytest.mark.parametrize(("currency", "is_taken"), [(each, True) for each in sorted(CURRENCIES)] + [("JPY", False)])
async def test_a_currency_that_the_page_does_not_take_is_refused(
    world: World, kind: CheckoutKind, currency: str, *, is_taken: bool
) -> None:
    """Of every kind, and before a customer stands before the gateway's error page."""
    relay = hosting(world)
    plan = PLAN if kind is CheckoutKind.RECURRING else None
    wanted = new(kind=kind, plan=plan, currency=currency)
    if is_taken:
        assert (await opened(relay, wanted)).currency == currency
        return
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(), wanted)

    words = "must be one that the gateway's page takes: AUD, EUR, GBP, LKR, USD"
    assert (refused.value.code, refused.value.msg) == (Code.INVALID_REQUEST, f"currency {words}")
    assert refused.value.fields == (FieldError("currency", words),)
    assert await relay.checkouts.of_order(world.account.merchant, "A-1") == []


async def test_a_currency_is_named_beside_what_else_is_wrong(world: World) -> None:
    """Whoever mends a request mends it once."""
    with pytest.raises(Refusal) as refused:
        await open_checkout(hosting(world), asked(), new(currency="JPY", return_to="https://elsewhere.example/"))

    assert [each.path for each in refused.value.fields] == ["return_to", "currency"]
