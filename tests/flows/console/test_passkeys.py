"""Passkeys of operators, with a device that tests hold in their hands."""

import dataclasses

import pytest
from tests.console.device import Device, Lie
from tests.flows.console.desk import FIREFOX, MINUTE_MS, PASSWORD, Desk

from payrelay.console.flows.passkeys import (
    PasskeyAnswer,
    add_passkey,
    ask_to_make,
    ask_to_show,
    confirm_passkey,
    list_passkeys,
    remove_passkey,
    remove_totp,
)
from payrelay.console.flows.sign_in import (
    Failure,
    SignedIn,
    Visitor,
    accept_invitation,
    sign_in,
    visitor_of,
)
from payrelay.console.rules.sign_in.passkeys import RelyingParty
from payrelay.console.rules.sign_in.tries import PASSKEY
from payrelay.core.operators.operator import FRESH_MS, PASSKEYS_MAX, OperatorTextError, SecondFactor, Stage
from payrelay.errors import Refusal
from payrelay.flows.operators.manage_operators import disable_operator, reset_password
from payrelay.flows.operators.parts import Actor
from payrelay.store.engine.database import Database, all_rows
from payrelay.store.operators.passkeys import removal_of_all

ADA = "ada@shop.example"
ROOT = Actor("root")
PARTY = RelyingParty("https://console.example", "console.example")


def brought(signed_in: SignedIn, text: str, party: RelyingParty | None = PARTY) -> PasskeyAnswer:
    """Gives an answer with the cookie of a session."""
    return PasskeyAnswer(text, signed_in.token.reveal(), party, FIREFOX)


async def begun(desk: Desk, email: str = ADA) -> SignedIn:
    """Signs in by the password."""
    found = await sign_in(desk.parts, email, PASSWORD, FIREFOX)
    assert isinstance(found, SignedIn)
    return found


async def added(desk: Desk, signed_in: SignedIn, device: Device, name: str = "phone") -> SignedIn | Visitor | Failure:
    """Adds a passkey in a session."""
    visitor = await desk.visitor(signed_in)
    asked = await ask_to_make(desk.parts, visitor, PARTY, signed_in.token.reveal())
    return await add_passkey(desk.parts, visitor, brought(signed_in, device.makes(asked)), name)


async def asked_for(desk: Desk, half: SignedIn, party: RelyingParty | None = PARTY) -> str | None:
    """Gives what the browser of a half session is asked to sign."""
    return await ask_to_show(desk.parts, await desk.visitor(half), party, half.token.reveal())


async def shown(desk: Desk, half: SignedIn, device: Device, lie: Lie | None = None) -> SignedIn | Failure:
    """Shows a passkey in a half session."""
    asked = await asked_for(desk, half)
    assert asked is not None
    text = device.shows(asked, lie or Lie())
    return await confirm_passkey(desk.parts, await desk.visitor(half), brought(half, text))


async def kind_of(desk: Desk) -> SecondFactor | None:
    """Gives what the operator's row says."""
    operator = await desk.parts.operators.by_email(ADA)
    assert operator is not None
    return operator.second_factor


@pytest.fixture
def device() -> Device:
    """A device at the console's page."""
    return Device(PARTY.origin)


async def test_a_passkey_alone_is_a_second_factor(desk: Desk, device: Device) -> None:
    """Set up after the invitation, asked for at the next sign-in, and each step stands in the history."""
    token = await desk.invited(ADA)
    first = await accept_invitation(desk.parts, token.reveal(), PASSWORD, FIREFOX)
    assert isinstance(first, SignedIn)
    opened = await added(desk, first, device)
    assert isinstance(opened, SignedIn)
    assert (opened.session.stage, await kind_of(desk)) == (Stage.OPEN, SecondFactor.PASSKEY)
    assert await visitor_of(desk.parts, first.token.reveal()) is None

    half = await begun(desk)
    assert half.session.stage is Stage.CODE
    again = await shown(desk, half, device)
    assert isinstance(again, SignedIn)
    assert again.session.stage is Stage.OPEN
    [passkey] = await list_passkeys(desk.parts, again.operator)
    assert (passkey.name, passkey.sign_count, passkey.used_at_ms) == ("phone", 1, desk.clock.at_ms)
    lines = await desk.parts.acts.before(None, 2)
    assert [(line.act, line.details) for line in lines] == [
        ("sign_in", "by passkey phone, from 192.0.2.1"),
        ("enrol_second_factor", "by passkey phone, from 192.0.2.1"),
    ]


async def test_it_works_beside_an_authenticator_app(desk: Desk, device: Device) -> None:
    """Each opens a session; and the page asks for either."""
    opened = await desk.hired(ADA)
    assert isinstance(await added(desk, opened, device), Visitor)
    assert await kind_of(desk) is SecondFactor.EITHER
    desk.clock.at_ms += MINUTE_MS

    assert isinstance(await shown(desk, await begun(desk), device), SignedIn)
    half = await begun(desk)
    code = await desk.code(half.operator)
    assert isinstance(await desk.confirm(half, code), SignedIn)
    assert await kind_of(desk) is SecondFactor.EITHER
    [line] = [each for each in await desk.parts.acts.before(None, 10) if each.subject.startswith("psk_")]
    assert (line.act, line.details) == ("enrol_second_factor", "passkey phone, from 192.0.2.1")


async def test_an_authenticator_app_may_be_set_up_beside_a_passkey(desk: Desk, device: Device) -> None:
    """For the day on which the browser has no script."""
    token = await desk.invited(ADA)
    first = await accept_invitation(desk.parts, token.reveal(), PASSWORD, FIREFOX)
    assert isinstance(first, SignedIn)
    opened = await added(desk, first, device)
    assert isinstance(opened, SignedIn)
    await desk.enrolled(opened)

    assert await kind_of(desk) is SecondFactor.EITHER


async def test_whoever_has_the_password_alone_sets_up_nothing(desk: Desk, device: Device) -> None:
    """Neither a passkey nor an app, also where the operator has a passkey and no app yet."""
    token = await desk.invited(ADA)
    first = await accept_invitation(desk.parts, token.reveal(), PASSWORD, FIREFOX)
    assert isinstance(first, SignedIn)
    stale = await begun(desk)
    code = await desk.first_code(stale)
    assert isinstance(await added(desk, first, device), SignedIn)
    half = await begun(desk)
    other = Device(PARTY.origin, b"another device")

    for session in (stale, half):
        assert await added(desk, session, other) is Failure.OVER
        assert await desk.confirm(session, code) is Failure.OVER
    assert await kind_of(desk) is SecondFactor.PASSKEY


async def test_an_answer_counts_once_in_its_own_session_for_its_own_purpose(desk: Desk, device: Device) -> None:
    """Whoever listened, or wrote into the database, brings nothing back."""
    opened = await desk.hired(ADA)
    asked = await ask_to_make(desk.parts, await desk.visitor(opened), PARTY, opened.token.reveal())
    text = device.makes(asked)
    assert isinstance(
        await add_passkey(desk.parts, await desk.visitor(opened), brought(opened, text), "phone"), Visitor
    )
    again = await add_passkey(desk.parts, await desk.visitor(opened), brought(opened, text), "phone")
    first, second = await begun(desk), await begun(desk)
    asked_first, asked_second = await asked_for(desk, first), await asked_for(desk, second)
    assert asked_first is not None
    assert asked_first != asked_second
    signed = device.shows(asked_first)

    assert again is Failure.OVER
    assert await confirm_passkey(desk.parts, await desk.visitor(second), brought(second, signed)) is Failure.WRONG
    assert isinstance(await confirm_passkey(desk.parts, await desk.visitor(first), brought(first, signed)), SignedIn)
    late = await begun(desk)
    assert await confirm_passkey(desk.parts, await desk.visitor(late), brought(late, signed)) is Failure.OVER
    assert await asked_for(desk, late) != asked_first


async def test_a_page_that_is_loaded_again_asks_the_same(desk: Desk, device: Device) -> None:
    """So nobody fills the database, and two tabs don't break each other; after ten minutes it asks anew."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    half = await begun(desk)
    asked = await asked_for(desk, half)
    assert asked is not None
    assert await asked_for(desk, half) == asked
    visitor = await desk.visitor(half)
    desk.clock.at_ms += 11 * MINUTE_MS

    assert await confirm_passkey(desk.parts, visitor, brought(half, device.shows(asked))) is Failure.OVER


async def test_another_operators_passkey_opens_nothing(desk: Desk, device: Device) -> None:
    """Also not with their own good signature, and nobody gets a passkey that somebody has."""
    bob = await desk.hired("bob@shop.example")
    await added(desk, bob, device)
    ada = await desk.hired(ADA)
    own = Device(PARTY.origin, b"ada's device")
    await added(desk, ada, own)

    assert await shown(desk, await begun(desk), device, Lie(user=ada.operator.id.encode())) is Failure.WRONG
    with pytest.raises(Refusal):
        await added(desk, ada, device, "bob's")
    assert len(await list_passkeys(desk.parts, ada.operator)) == 1


async def test_a_copied_passkey_opens_nothing_any_more(desk: Desk, device: Device) -> None:
    """The sign-in ends, the history says so, and neither the copy nor the device itself gets in afterwards."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    assert isinstance(await shown(desk, await begun(desk), device), SignedIn)
    half = await begun(desk)

    assert await shown(desk, half, device, Lie(count=1)) is Failure.COPIED
    assert await visitor_of(desk.parts, half.token.reveal()) is None
    assert await asked_for(desk, await begun(desk)) is None
    [newest] = await desk.parts.acts.before(None, 1)
    assert (newest.act, newest.details) == ("lock_passkey", "passkey phone, counted 1 after 1, from 192.0.2.1")


async def test_two_browsers_at_one_moment_are_no_copy(desk: Desk, device: Device) -> None:
    """The answer that was signed first may come last. It opens nothing, and the passkey goes on.

    A real copy, which signs in a session that began later, is still found out.
    """
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    first, second = await begun(desk), await begun(desk)
    asked_first, asked_second = await asked_for(desk, first), await asked_for(desk, second)
    assert asked_first is not None
    assert asked_second is not None
    signed_first, signed_second = device.shows(asked_first), device.shows(asked_second)
    desk.clock.at_ms += 1
    assert isinstance(
        await confirm_passkey(desk.parts, await desk.visitor(second), brought(second, signed_second)), SignedIn
    )

    late = await confirm_passkey(desk.parts, await desk.visitor(first), brought(first, signed_first))
    assert late is Failure.OVER
    assert isinstance(await shown(desk, await begun(desk), device), SignedIn)
    desk.clock.at_ms += 1
    assert await shown(desk, await begun(desk), device, Lie(count=2)) is Failure.COPIED


async def test_passkeys_are_shown_twenty_times(desk: Desk, device: Device) -> None:
    """Each takes time to check; and the count of codes is another one."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    desk.clock.at_ms += MINUTE_MS
    half = await begun(desk)
    for _ in range(PASSKEY.tries):
        assert await shown(desk, half, Device(PARTY.origin)) is Failure.WRONG

    assert await shown(desk, half, device) is Failure.TOO_OFTEN
    assert await added(desk, opened, Device(PARTY.origin, b"x")) is Failure.TOO_OFTEN
    code = await desk.code(half.operator)
    assert isinstance(await desk.confirm(half, code), SignedIn)


async def test_an_answer_for_another_page_adds_nothing(desk: Desk) -> None:
    """A page that only looks like the console."""
    opened = await desk.hired(ADA)

    assert await added(desk, opened, Device("https://console.evil.example")) is Failure.WRONG
    assert await list_passkeys(desk.parts, opened.operator) == []


async def test_where_browsers_make_no_passkeys_none_counts(desk: Desk, device: Device) -> None:
    """At an address in numbers, and at another host than they were made for."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    half = await begun(desk)
    asked = await asked_for(desk, half)
    assert asked is not None
    visitor = await desk.visitor(half)

    assert await asked_for(desk, half, None) is None
    assert await asked_for(desk, half, RelyingParty("https://new.example", "new.example")) is None
    assert await confirm_passkey(desk.parts, visitor, brought(half, device.shows(asked), None)) is Failure.OVER
    nowhere = brought(opened, "", None)
    assert await add_passkey(desk.parts, await desk.visitor(opened), nowhere, "phone") is Failure.OVER


async def test_an_open_session_takes_no_passkey_for_a_sign_in(desk: Desk, device: Device) -> None:
    """There is nothing to open."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)

    assert await confirm_passkey(desk.parts, await desk.visitor(opened), brought(opened, "{}")) is Failure.OVER


async def test_second_factors_are_changed_shortly_after_a_sign_in(desk: Desk, device: Device) -> None:
    """Whoever finds an open browser neither adds nor removes one."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    [passkey] = await list_passkeys(desk.parts, opened.operator)
    desk.clock.at_ms += FRESH_MS

    assert await added(desk, opened, Device(PARTY.origin, b"another")) is Failure.OVER
    with pytest.raises(Refusal, match="sign in again first"):
        await remove_passkey(desk.parts, await desk.visitor(opened), passkey.id)
    with pytest.raises(Refusal, match="sign in again first"):
        await remove_totp(desk.parts, await desk.visitor(opened))
    assert await kind_of(desk) is SecondFactor.EITHER


async def test_the_last_second_factor_stays_where_one_is_required(desk: Desk, device: Device) -> None:
    """Others go, each with a line; and a secret that counts no more is destroyed."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    desk.clock.at_ms += 1
    await added(desk, opened, Device(PARTY.origin, b"another"), "laptop")
    phone, laptop = await list_passkeys(desk.parts, opened.operator)
    await remove_totp(desk.parts, await desk.visitor(opened))
    await remove_totp(desk.parts, await desk.visitor(opened))
    assert (await kind_of(desk), await desk.parts.operators.totp_secret(opened.operator.id)) == (
        SecondFactor.PASSKEY,
        None,
    )
    await remove_passkey(desk.parts, await desk.visitor(opened), phone.id)
    await remove_passkey(desk.parts, await desk.visitor(opened), phone.id)

    with pytest.raises(Refusal, match="your only second factor"):
        await remove_passkey(desk.parts, await desk.visitor(opened), laptop.id)
    assert await list_passkeys(desk.parts, opened.operator) == [laptop]
    lines = await desk.parts.acts.before(None, 2)
    assert [(line.act, line.details) for line in lines] == [
        ("remove_second_factor", "passkey phone"),
        ("remove_second_factor", "authenticator app"),
    ]
    assert await shown(desk, await begun(desk), device) is Failure.WRONG


async def test_where_none_is_required_all_may_go(database: Database, device: Device) -> None:
    """Then the password alone opens a session."""
    desk = Desk(database, needs_second_factor=False)
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    [passkey] = await list_passkeys(desk.parts, opened.operator)
    assert (await begun(desk)).session.stage is Stage.CODE
    await remove_passkey(desk.parts, await desk.visitor(opened), passkey.id)

    assert (await begun(desk)).session.stage is Stage.OPEN


@pytest.mark.parametrize("end", [disable_operator, reset_password])
async def test_an_administrator_takes_passkeys_away(desk: Desk, device: Device, end: object) -> None:
    """With everything else that lets somebody in."""
    await desk.hired("root@shop.example")
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    await end(desk.parts, ROOT, ADA, "lost phone")  # type: ignore[operator]

    assert (await kind_of(desk), await list_passkeys(desk.parts, opened.operator)) == (None, [])


async def test_a_lost_row_lets_nobody_in_without_a_second_factor(desk: Desk, device: Device) -> None:
    """Whoever removes a passkey's row from the database leaves the operator's own, which asks for one."""
    opened = await desk.hired(ADA)
    await added(desk, opened, device)
    await remove_totp(desk.parts, await desk.visitor(opened))
    operator = await desk.parts.operators.by_email(ADA)
    assert operator is not None
    desk.parts = dataclasses.replace(desk.parts, needs_second_factor=False)
    await desk.database.write(all_rows(removal_of_all(operator.id)))

    half = await begun(desk)
    assert (half.session.stage, await asked_for(desk, half)) == (Stage.CODE, None)


async def test_an_operator_has_ten_at_most_and_each_a_name(desk: Desk) -> None:
    """A list that somebody can look over."""
    opened = await desk.hired(ADA)
    for number in range(PASSKEYS_MAX):
        await added(desk, opened, Device(PARTY.origin, f"device {number}".encode()))
    with pytest.raises(Refusal, match="10 passkeys already"):
        await added(desk, opened, Device(PARTY.origin, b"one more"))
    with pytest.raises(OperatorTextError):
        await added(desk, opened, Device(PARTY.origin, b"one more"), " ")

    assert len(await list_passkeys(desk.parts, opened.operator)) == PASSKEYS_MAX
