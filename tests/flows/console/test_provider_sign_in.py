"""Signing in by a provider at a real address: who gets in, who doesn't, and what was tried before."""

import asyncio
import dataclasses
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.flows.console.desk import FIREFOX, MINUTE_MS, PASSWORD, QUIET, ROOT, Desk
from tests.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider

from payrelay.console.flows.provider_sign_in import BroughtBack, LetIn, lead_to_provider, take_from_provider
from payrelay.console.flows.sign_in import Failure, SignedIn, accept_invitation, confirm_code, sign_in, visitor_of
from payrelay.console.rules.sign_in.provider import ProviderRules
from payrelay.console.runtime.provider_calls import SignInProvider
from payrelay.core.operators.operator import OperatorState, Stage
from payrelay.core.operators.roles import Role
from payrelay.core.secret import Secret
from payrelay.flows.operators.manage_operators import change_role, disable_operator, end_sessions, reset_password
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query

ADA, BOB = "ada@shop.example", "bob@shop.example"
BACK = "https://console.example/console/sign-in/provider/back"


@pytest.fixture
def provider(desk: Desk) -> Iterator[OpenIdProvider]:
    """Gives the provider, which the desk's operators sign in by."""
    with OpenIdProvider(lambda: desk.clock.at_ms / 1000) as provider:
        linked(desk, provider)
        yield provider


def linked(desk: Desk, provider: OpenIdProvider, *second_factors: str) -> None:
    """Has the desk ask this provider."""
    rules = ProviderRules(issuer=provider.issuer, client_id=CLIENT_ID, second_factors=frozenset(second_factors))
    asked = SignInProvider(rules, Secret(CLIENT_SECRET), BACK, desk.clock, QUIET)
    desk.parts = dataclasses.replace(desk.parts, provider=asked)


class Led:
    """A browser that was led to the provider; ``brought`` is what it comes back with."""

    def __init__(self, cookie: str, brought: BroughtBack) -> None:
        self.cookie = cookie
        self.brought = brought

    @classmethod
    async def through(cls, desk: Desk, provider: OpenIdProvider, cookie: str | None = None) -> "Led":
        """Leads one there."""
        away = await lead_to_provider(desk.parts, "/console/acts", cookie, FIREFOX)
        assert not isinstance(away, Failure)
        back = provider.approved(dict(parse_qsl(urlsplit(away.address).query)))
        told = dict(parse_qsl(urlsplit(back).query))
        return cls(away.cookie.reveal(), BroughtBack(told["state"], told["code"], told["iss"]))

    async def back(self, desk: Desk) -> LetIn | Failure:
        """Has it come back."""
        return await take_from_provider(desk.parts, self.brought, self.cookie, FIREFOX)


async def came(desk: Desk, provider: OpenIdProvider) -> LetIn | Failure:
    """Signs the provider's person in."""
    return await (await Led.through(desk, provider)).back(desk)


async def stage(desk: Desk, provider: OpenIdProvider) -> Stage | Failure:
    """Tells how far the provider's person comes."""
    found = await came(desk, provider)
    return found if isinstance(found, Failure) else found.signed_in.session.stage


async def test_whom_somebody_invited_gets_in_by_a_verified_address(desk: Desk, provider: OpenIdProvider) -> None:
    """The invitation is used up by it, the account is linked, and the second factor is still to come."""
    token = await desk.invited(ADA, Role.SUPPORT)
    found = await came(desk, provider)
    assert isinstance(found, LetIn)
    operator = await desk.parts.operators.by_email(ADA)
    assert operator is not None

    assert (found.signed_in.session.stage, found.way) == (Stage.ENROL, "/console/acts")
    assert (operator.state, operator.role, operator.password_hash) == (OperatorState.ACTIVE, Role.SUPPORT, None)
    assert operator.provider_subject
    assert await accept_invitation(desk.parts, token.reveal(), PASSWORD, FIREFOX) is Failure.OVER
    assert await sign_in(desk.parts, ADA, PASSWORD, FIREFOX) is Failure.WRONG
    assert ("Ada", "accept_invitation") in await desk.done()


@pytest.mark.parametrize("change", [{"email_verified": False}, {"email": BOB}, {"email": None}], ids=str)
async def test_nobody_gets_in_whom_nobody_invited(
    desk: Desk, provider: OpenIdProvider, change: dict[str, object]
) -> None:
    """By an address that isn't verified, by one of nobody here, or by none."""
    await desk.invited(ADA)
    provider.person |= change

    assert await came(desk, provider) is Failure.NOT_INVITED


async def test_an_invitation_that_is_over_lets_nobody_in_by_the_provider(desk: Desk, provider: OpenIdProvider) -> None:
    """Three days, as for a password; and one that was ended counts no more."""
    await desk.invited(ADA)
    await desk.invited(BOB)
    await end_sessions(desk.parts, ROOT, BOB, "a mistake")
    provider.person |= {"email": BOB}
    assert await came(desk, provider) is Failure.NOT_INVITED
    provider.person |= {"email": ADA}
    desk.clock.at_ms += 73 * 60 * MINUTE_MS

    assert await came(desk, provider) is Failure.NOT_INVITED


async def test_an_operator_with_a_password_is_linked_once(desk: Desk, provider: OpenIdProvider) -> None:
    """The code is asked for as after the password; an address that goes to somebody else opens nothing then."""
    await desk.hired(ADA)
    opened = await with_code(desk, await came(desk, provider))
    assert isinstance(opened, SignedIn)
    assert ("Ada", "link_provider") in await desk.done()
    assert await visitor_of(desk.parts, opened.token.reveal()) is not None
    provider.person |= {"sub": "u-2"}
    assert await came(desk, provider) is Failure.NOT_INVITED
    provider.person |= {"sub": "u-1", "email": "ada.married@shop.example", "email_verified": False}

    assert await stage(desk, provider) is Stage.CODE


async def test_nobody_is_linked_who_has_not_shown_the_second_factor(desk: Desk, provider: OpenIdProvider) -> None:
    """Whoever gets the address at the provider, and has no code, doesn't keep the operator from being linked."""
    await desk.hired(ADA)
    provider.person |= {"sub": "u-stranger"}
    half = await came(desk, provider)
    assert isinstance(half, LetIn)
    assert ("Ada", "link_provider") not in await desk.done()
    wrong = await confirm_code(
        desk.parts, await desk.visitor(half.signed_in), "000000", FIREFOX, token=half.signed_in.token.reveal()
    )
    assert wrong is Failure.WRONG
    provider.person |= {"sub": "u-1"}
    assert isinstance(await with_code(desk, await came(desk, provider)), SignedIn)
    provider.person |= {"sub": "u-stranger"}

    assert await came(desk, provider) is Failure.NOT_INVITED


async def test_whoever_writes_among_the_challenges_links_nobody(desk: Desk, provider: OpenIdProvider) -> None:
    """The kept name counts only with a proof under the session's token, which the store doesn't have."""
    await desk.hired(ADA)
    half = await came(desk, provider)
    assert isinstance(half, LetIn)
    forged = query("UPDATE console_challenges SET way = replace(way, substr(way, 1, 8), 'ffffffff')")
    await desk.database.write(all_rows(Statement(forged, (), is_whole=True)))
    assert isinstance(await with_code(desk, half), SignedIn)

    assert ("Ada", "link_provider") not in await desk.done()


async def test_sessions_by_password_end_where_the_provider_becomes_the_only_way(
    desk: Desk, provider: OpenIdProvider
) -> None:
    """At once, those that are half done too; sessions by the provider go on, with our second factor or without."""
    by_password = await desk.hired(ADA)
    desk.clock.at_ms += MINUTE_MS
    half = await sign_in(desk.parts, ADA, PASSWORD, FIREFOX)
    assert isinstance(half, SignedIn)
    by_provider = await with_code(desk, await came(desk, provider))
    assert isinstance(by_provider, SignedIn)
    desk.clock.at_ms += MINUTE_MS
    assert await visitor_of(desk.parts, by_password.token.reveal()) is not None
    desk.parts = dataclasses.replace(desk.parts, takes_passwords=False)

    assert await visitor_of(desk.parts, by_password.token.reveal()) is None
    assert await visitor_of(desk.parts, by_provider.token.reveal()) is not None
    code = await desk.code(half.operator)
    assert (
        await confirm_code(desk.parts, await desk.visitor(half), code, FIREFOX, token=half.token.reveal())
        is Failure.NO_PASSWORDS
    )


async def with_code(desk: Desk, half: LetIn | Failure) -> SignedIn | Failure:
    """Shows the second factor after the provider."""
    assert isinstance(half, LetIn)
    desk.clock.at_ms += MINUTE_MS
    signed_in = half.signed_in
    visitor, code = await desk.visitor(signed_in), await desk.code(signed_in.operator)
    return await confirm_code(desk.parts, visitor, code, FIREFOX, token=signed_in.token.reveal())


async def test_a_disabled_operator_is_refused_also_by_the_provider(desk: Desk, provider: OpenIdProvider) -> None:
    """At once; and once invited anew, another account can be linked."""
    await desk.hired(BOB)
    await desk.hired(ADA)
    await came(desk, provider)
    await disable_operator(desk.parts, ROOT, ADA, "has left")
    assert await came(desk, provider) is Failure.NOT_INVITED
    await reset_password(desk.parts, ROOT, ADA, "is back, with a new account")
    provider.person |= {"sub": "u-9"}

    assert await stage(desk, provider) is Stage.ENROL


async def test_the_providers_second_factor_counts_where_the_settings_name_it(
    desk: Desk, provider: OpenIdProvider
) -> None:
    """Otherwise ours is asked for, whatever the provider says."""
    await desk.hired(ADA)
    provider.person |= {"amr": ["pwd", "otp"]}
    assert await stage(desk, provider) is Stage.CODE
    linked(desk, provider, "otp")
    assert await stage(desk, provider) is Stage.OPEN
    provider.person |= {"amr": ["pwd"]}

    assert await stage(desk, provider) is Stage.CODE
    assert (await desk.done())[-1] == ("Ada", "link_provider")


async def test_who_finds_an_open_browser_is_not_signed_in_anew(desk: Desk, provider: OpenIdProvider) -> None:
    """The provider knows the browser still, and asks for nothing: that isn't a second factor that was shown now."""
    await desk.invited(ADA)
    linked(desk, provider, "otp")
    provider.person |= {"amr": ["pwd", "otp"]}
    assert await stage(desk, provider) is Stage.OPEN
    provider.changes["auth_time"] = int(provider.now_s())
    desk.clock.at_ms += 2 * MINUTE_MS

    assert await stage(desk, provider) is Failure.PROVIDER_REFUSED


async def test_a_second_factor_that_is_optional_is_not_asked_for(desk: Desk, provider: OpenIdProvider) -> None:
    """As with a password."""
    desk.parts = dataclasses.replace(desk.parts, needs_second_factor=False)
    await desk.invited(ADA)

    assert await stage(desk, provider) is Stage.OPEN


async def test_no_claim_gives_a_role(desk: Desk, provider: OpenIdProvider) -> None:
    """Whatever the provider says of roles and groups."""
    await desk.invited(ADA, Role.VIEWER)
    provider.person |= {"role": "admin", "roles": ["admin"], "groups": ["admin"]}
    found = await came(desk, provider)
    assert isinstance(found, LetIn)
    await change_role(desk.parts, ROOT, ADA, Role.SUPPORT, "learns")
    await came(desk, provider)
    operator = await desk.parts.operators.by_email(ADA)

    assert found.signed_in.operator.role is Role.VIEWER
    assert operator is not None
    assert operator.role is Role.SUPPORT


async def test_what_comes_back_counts_once_for_its_browser(desk: Desk, provider: OpenIdProvider) -> None:
    """Another browser, a made-up state, a second time, too late: nothing is asked of the provider then."""
    await desk.hired(ADA)
    led = await Led.through(desk, provider)
    other = await Led.through(desk, provider)
    for brought, cookie in (
        (led.brought, other.cookie),
        (led.brought, None),
        (led.brought._replace(state="made up"), led.cookie),
        (led.brought._replace(state=""), led.cookie),
    ):
        assert await take_from_provider(desk.parts, brought, cookie, FIREFOX) is Failure.OVER
    assert provider.forms == []
    assert isinstance(await led.back(desk), LetIn)
    assert await led.back(desk) is Failure.OVER
    assert len(provider.forms) == 1
    desk.clock.at_ms += 10 * MINUTE_MS

    assert await other.back(desk) is Failure.OVER


async def test_ten_requests_with_one_answer_are_one_sign_in(desk: Desk, provider: OpenIdProvider) -> None:
    """At one moment, too: the database gives it away once."""
    await desk.hired(ADA)
    led = await Led.through(desk, provider)
    found = await asyncio.gather(*(led.back(desk) for _ in range(10)))

    assert sum(isinstance(each, LetIn) for each in found) == 1
    assert len(provider.forms) == 1


async def test_a_code_of_another_browser_is_worth_nothing(desk: Desk, provider: OpenIdProvider) -> None:
    """Whoever has a victim's browser come back with their own code, or steals a code, lacks its verifier."""
    await desk.hired(ADA)
    mine, stolen = await Led.through(desk, provider), await Led.through(desk, provider)
    mine.brought = mine.brought._replace(code=stolen.brought.code)

    assert await mine.back(desk) is Failure.PROVIDER_REFUSED


@pytest.mark.parametrize("issuer", ["https://other.example", ""])
async def test_the_answer_of_another_provider_is_not_taken_for_this_ones(
    desk: Desk, provider: OpenIdProvider, issuer: str
) -> None:
    """Its name is compared, and may not be left out where the provider says that it is there; no code is sent off."""
    led = await Led.through(desk, provider)
    led.brought = led.brought._replace(issuer=issuer)

    assert await led.back(desk) is Failure.PROVIDER_REFUSED
    assert provider.forms == []


async def test_a_refusal_of_the_provider_is_told(desk: Desk, provider: OpenIdProvider) -> None:
    """Somebody who presses Cancel there comes back without a code."""
    led = await Led.through(desk, provider)
    led.brought = led.brought._replace(code="")

    assert await led.back(desk) is Failure.PROVIDER_REFUSED


async def test_two_tabs_of_one_browser_both_come_back(desk: Desk, provider: OpenIdProvider) -> None:
    """The cookie is that of the first; each has an answer of its own."""
    await desk.hired(ADA)
    first = await Led.through(desk, provider)
    second = await Led.through(desk, provider, first.cookie)

    assert second.cookie == first.cookie
    assert isinstance(await first.back(desk), LetIn)
    assert isinstance(await second.back(desk), LetIn)


async def test_a_first_sign_in_at_the_same_moment_is_one(desk: Desk, provider: OpenIdProvider) -> None:
    """Whoever is slower begins again, and nothing is half done."""
    await desk.invited(ADA)
    tabs = [await Led.through(desk, provider) for _ in range(3)]
    found = await asyncio.gather(*(tab.back(desk) for tab in tabs))

    assert any(isinstance(each, LetIn) for each in found)
    assert [act for _, act in await desk.done()].count("accept_invitation") == 1


async def test_whoever_comes_too_often_is_refused_before_the_provider_is_asked(
    desk: Desk, provider: OpenIdProvider
) -> None:
    """Sixty tries from one address, as with passwords."""
    led = await Led.through(desk, provider)
    for _ in range(60):
        await lead_to_provider(desk.parts, "/console/", None, FIREFOX)

    assert await lead_to_provider(desk.parts, "/console/", None, FIREFOX) is Failure.TOO_OFTEN
    assert await led.back(desk) is Failure.NOT_INVITED, "who was led there before comes back, once"
    assert len(provider.forms) == 1


async def test_who_comes_back_and_gets_in_is_not_counted(desk: Desk, provider: OpenIdProvider) -> None:
    """Neither on the way there nor on the way back, as often as a whole office does it; nor while it fails."""
    await desk.invited(ADA)
    linked(desk, provider, "mfa")
    provider.person |= {"amr": ["mfa"]}
    found = [await stage(desk, provider) for _ in range(70)]
    assert found == [Stage.OPEN] * 70
    nobody = ProviderRules(issuer="http://127.0.0.1:9", client_id=CLIENT_ID)
    asked = SignInProvider(nobody, Secret(CLIENT_SECRET), BACK, desk.clock, QUIET)
    desk.parts = dataclasses.replace(desk.parts, provider=asked)
    down = [await lead_to_provider(desk.parts, "/console/", None, FIREFOX) for _ in range(70)]

    assert down == [Failure.PROVIDER_DOWN] * 70


async def test_without_a_provider_nobody_is_led_anywhere(desk: Desk) -> None:
    """The addresses are there, and lead nowhere."""
    assert await lead_to_provider(desk.parts, "/console/", None, FIREFOX) is Failure.PROVIDER_DOWN
    assert await take_from_provider(desk.parts, BroughtBack("s", "c", ""), "x", FIREFOX) is Failure.PROVIDER_DOWN


async def test_where_the_provider_is_the_only_way_no_password_opens_anything(
    desk: Desk, provider: OpenIdProvider
) -> None:
    """Neither the right one, nor one that an invitation would give."""
    await desk.hired(ADA)
    token = await desk.invited(BOB)
    desk.parts = dataclasses.replace(desk.parts, takes_passwords=False)

    assert await sign_in(desk.parts, ADA, PASSWORD, FIREFOX) is Failure.NO_PASSWORDS
    assert await accept_invitation(desk.parts, token.reveal(), PASSWORD, FIREFOX) is Failure.NO_PASSWORDS
    assert await stage(desk, provider) is Stage.CODE
