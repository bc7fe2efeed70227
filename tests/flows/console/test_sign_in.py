import asyncio
import dataclasses
import threading

import pytest
from argon2 import PasswordHasher
from tests.flows.console.desk import FIREFOX, MINUTE_MS, PASSWORD, Desk, quick_passwords

from payrelay.console.flows.parts import Browser
from payrelay.console.flows.sign_in import (
    Failure,
    SignedIn,
    accept_invitation,
    confirm_code,
    invited_by,
    sign_in,
    sign_out,
    visitor_of,
)
from payrelay.console.rules.sign_in.tries import ADDRESS, CODE, WINDOW_MS
from payrelay.console.rules.sign_in.tries import PASSWORD as PASSWORDS
from payrelay.console.runtime.passwords import OF_A_NETWORK_MAX, PLACES_MAX, Passwords
from payrelay.core.operators.operator import IDLE_MS, INVITATION_MS, SESSION_MS, OperatorTextError, Stage
from payrelay.core.operators.roles import Role
from payrelay.flows.operators.manage_operators import disable_operator, end_sessions, reset_password
from payrelay.flows.operators.parts import Actor
from payrelay.store.engine.database import Database

OFFICE = Browser("198.51.100.1", "")
ADA = "ada@shop.example"
ROOT = Actor("root")


async def stages(desk: Desk, signed_in: SignedIn) -> Stage | None:
    """Gives the stage of the session that a cookie opens, if any."""
    visitor = await visitor_of(desk.parts, signed_in.token.reveal())
    return None if visitor is None else visitor.session.stage


async def entered(desk: Desk, password: str = PASSWORD, email: str = ADA) -> SignedIn:
    """Signs in by the password, which must be right."""
    found = await sign_in(desk.parts, email, password, FIREFOX)
    assert isinstance(found, SignedIn)
    return found


async def test_the_way_in(desk: Desk) -> None:
    """An invitation, a password, a code that enrols; later a password and a code; then the end of the session."""
    token = await desk.invited(ADA)
    begun = await accept_invitation(desk.parts, token.reveal(), PASSWORD, FIREFOX)
    assert isinstance(begun, SignedIn)
    assert await stages(desk, begun) is Stage.ENROL
    assert await desk.to_enrol(begun) == await desk.to_enrol(begun)
    opened = await desk.confirm(begun, await desk.first_code(begun))
    assert isinstance(opened, SignedIn)
    assert [await stages(desk, each) for each in (begun, opened)] == [None, Stage.OPEN]
    await sign_out(desk.parts, await desk.visitor(opened))
    assert await stages(desk, opened) is None

    desk.clock.at_ms += MINUTE_MS
    half = await entered(desk)
    assert await stages(desk, half) is Stage.CODE
    whole = await desk.confirm(half, await desk.code(half.operator))
    assert isinstance(whole, SignedIn)
    assert [await stages(desk, each) for each in (half, whole)] == [None, Stage.OPEN]
    assert await desk.done() == [
        ("root", "add_operator"),
        *(("Ada", act) for act in ("accept_invitation", "enrol_second_factor", "sign_out", "sign_in")),
    ]


@pytest.mark.parametrize(
    ("email", "password"), [(ADA, "wrong"), ("eve@shop.example", PASSWORD), ("no address", ""), (ADA, "")]
)
async def test_what_was_wrong_is_not_said(desk: Desk, email: str, password: str) -> None:
    """Nobody learns who has an account."""
    await desk.hired(ADA)

    assert await sign_in(desk.parts, email, password, FIREFOX) is Failure.WRONG


class Watched(Passwords):
    """Counts the passwords that are looked at, and looks at none before it may."""

    def __init__(self) -> None:
        super().__init__()
        self._quick = quick_passwords()
        self.looked_at = 0
        self.may_look = asyncio.Event()
        self.are_many = asyncio.Event()

    async def fits(self, password_hash: str | None, password: str) -> bool:
        """Compares, as soon as it may."""
        self.looked_at += 1
        if self.looked_at == PLACES_MAX:
            self.are_many.set()
        await self.may_look.wait()
        return await self._quick.fits(password_hash, password)


async def test_passwords_are_guessed_ten_times(desk: Desk) -> None:
    """Then the right one is refused too, from any address, until a quarter of an hour has passed since the first one.

    However often somebody tries meanwhile; and others get in, also from the address of whoever is refused.
    """
    await desk.hired(ADA)
    await desk.hired("bob@shop.example")
    guesses = [
        await sign_in(desk.parts, ADA, f"guess {n}", Browser(f"192.0.2.{n}", "")) for n in range(PASSWORDS.tries)
    ]
    assert set(guesses) == {Failure.WRONG}
    for _ in range(14):
        desk.clock.at_ms += MINUTE_MS
        for _ in range(10):
            assert await sign_in(desk.parts, ADA, PASSWORD, OFFICE) is Failure.TOO_OFTEN

    assert isinstance(await sign_in(desk.parts, "bob@shop.example", PASSWORD, OFFICE), SignedIn)
    desk.clock.at_ms += WINDOW_MS - 14 * MINUTE_MS
    await entered(desk)


async def test_an_address_that_tries_many_names_is_refused(desk: Desk) -> None:
    """One password for everybody is a guess too; and all addresses of one /64 are one. No other address is."""
    desk.parts = dataclasses.replace(desk.parts, passwords=(watched := Watched()))
    watched.may_look.set()
    for network, browsers in (
        ("one address", [FIREFOX] * 140),
        ("one /64", [Browser(f"2001:db8:1:2::{number:x}", "") for number in range(140)]),
        ("another /64", [Browser(f"2001:db8:1:3:{number:x}::1", "") for number in range(140)]),
    ):
        watched.looked_at = 0
        names = [f"{network[:3]}{number}@shop.example" for number in range(140)]
        found = [await sign_in(desk.parts, name, "2026", each) for name, each in zip(names, browsers, strict=True)]

        assert found == [Failure.WRONG] * ADDRESS.tries + [Failure.TOO_OFTEN] * (140 - ADDRESS.tries), network
        assert watched.looked_at == ADDRESS.tries, network


async def test_a_sign_in_that_came_to_its_end_is_not_counted(database: Database) -> None:
    """A whole office signs in from one address, again and again; wrong tries among them stay counted."""
    desk = Desk(database, needs_second_factor=False)
    await desk.hired(ADA)
    wrong = [await sign_in(desk.parts, f"{number}@shop.example", "x", FIREFOX) for number in range(ADDRESS.tries - 1)]
    found = [await sign_in(desk.parts, ADA, PASSWORD, FIREFOX) for _ in range(2 * PASSWORDS.tries)]

    assert set(wrong) == {Failure.WRONG}
    assert all(isinstance(each, SignedIn) for each in found)
    assert await sign_in(desk.parts, ADA, "x", FIREFOX) is Failure.WRONG
    assert await sign_in(desk.parts, ADA, PASSWORD, FIREFOX) is Failure.TOO_OFTEN


async def test_a_password_that_no_second_factor_follows_stays_counted(desk: Desk) -> None:
    """Whoever has it alone begins no more than ten sign-ins; with the code, each is taken off again."""
    await desk.hired(ADA)
    for _ in range(2 * PASSWORDS.tries):
        desk.clock.at_ms += MINUTE_MS // 2
        half = await entered(desk)
        code = await desk.code(half.operator)
        assert isinstance(await desk.confirm(half, code), SignedIn)
    found = [await sign_in(desk.parts, ADA, PASSWORD, FIREFOX) for _ in range(PASSWORDS.tries + 1)]

    assert [isinstance(each, SignedIn) for each in found] == [True] * PASSWORDS.tries + [False]


async def test_few_passwords_wait_to_be_looked_at(desk: Desk) -> None:
    """The others are told at once to come again, and are not counted. One network leaves places to others."""
    await desk.hired(ADA)
    desk.clock.at_ms += MINUTE_MS
    desk.parts = dataclasses.replace(desk.parts, passwords=(watched := Watched()))
    crowd = [Browser(f"2001:db8::{number:x}", "") for number in range(30)]
    crowd += [Browser(f"2001:db8:{number:x}::1", "") for number in range(1, 31)]
    names = [f"{number}@shop.example" for number in range(len(crowd))]
    tried = asyncio.gather(*(sign_in(desk.parts, *each) for each in zip(names, names, crowd, strict=True)))
    await watched.are_many.wait()
    refused = await sign_in(desk.parts, ADA, PASSWORD, OFFICE)
    watched.may_look.set()
    found = await tried

    assert refused is Failure.BUSY
    assert found[:30] == [Failure.WRONG] * OF_A_NETWORK_MAX + [Failure.BUSY] * (30 - OF_A_NETWORK_MAX)
    assert found.count(Failure.WRONG) == watched.looked_at == PLACES_MAX
    assert [await sign_in(desk.parts, ADA, "x", OFFICE) for _ in range(PASSWORDS.tries)].count(Failure.WRONG) == 10


class Threads(PasswordHasher):
    """Notes the thread of each hash."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.threads: list[int] = []

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        """Hashes a password."""
        self.threads.append(threading.get_native_id())
        return super().hash(password, salt=salt)


async def test_passwords_leave_the_processor_to_others() -> None:
    """A flood of sign-ins made reads of the API ten times slower: one thread hashes, beside the event loop."""
    passwords = Passwords(hasher := Threads())
    hashes = await asyncio.gather(*(passwords.hash(password) for password in "abcdefgh"))

    assert [await passwords.fits(each, "c") for each in (*hashes, None)] == [False, False, True] + [False] * 6
    assert len(hasher.threads) == len(hashes) + 1
    assert len({*hasher.threads, threading.get_native_id()}) == 2


async def test_codes_are_guessed_five_times(desk: Desk) -> None:
    """Whoever has the password alone guesses five of a million, and a new sign-in begins no new count."""
    await desk.hired(ADA)
    desk.clock.at_ms += MINUTE_MS
    half = await entered(desk)
    for _ in range(CODE.tries):
        assert await desk.confirm(half, "000000") is Failure.WRONG
    again = await entered(desk)
    code = await desk.code(half.operator)

    assert await desk.confirm(again, code) is Failure.TOO_OFTEN


async def test_a_code_opens_once(desk: Desk) -> None:
    """Two browsers that send one code at one moment: one gets in."""
    await desk.hired(ADA)
    desk.clock.at_ms += MINUTE_MS
    halves = [await entered(desk), await entered(desk)]
    code = await desk.code(halves[0].operator)
    visitors = [await desk.visitor(half) for half in halves]
    found = await asyncio.gather(*(confirm_code(desk.parts, each, code, FIREFOX, token="") for each in visitors))

    assert sorted(isinstance(each, SignedIn) for each in found) == [False, True]
    late = await entered(desk)
    assert await desk.confirm(late, code) is Failure.WRONG


async def test_a_session_ends_by_itself(desk: Desk) -> None:
    """Half an hour after the last request, and at the end of a working day whatever is done."""
    idle, busy = await desk.hired(ADA), await desk.hired("bob@shop.example")
    for _ in range(SESSION_MS // (IDLE_MS // 2) - 1):
        desk.clock.at_ms += IDLE_MS // 2
        assert await stages(desk, busy) is Stage.OPEN
    assert await stages(desk, idle) is None
    desk.clock.at_ms += IDLE_MS // 2
    assert await stages(desk, busy) is None


async def test_a_sign_in_that_is_not_completed_ends_soon(desk: Desk) -> None:
    """A browser that was left before the code is asked for opens nothing an hour later."""
    await desk.hired(ADA)
    half = await entered(desk)
    desk.clock.at_ms += 11 * MINUTE_MS

    assert await stages(desk, half) is None


@pytest.mark.parametrize("end", [disable_operator, reset_password, end_sessions])
async def test_an_administrator_ends_every_session(desk: Desk, end: object) -> None:
    """From the next request on; who was disabled does not get in again, and a half sign-in ends too."""
    await desk.hired("root@shop.example")
    opened = await desk.hired(ADA)
    desk.clock.at_ms += MINUTE_MS
    half = await entered(desk)
    visitor, code = await desk.visitor(half), await desk.code(half.operator)
    await end(desk.parts, ROOT, ADA, "lost phone")  # type: ignore[operator]

    assert [await stages(desk, each) for each in (opened, half)] == [None, None]
    assert await confirm_code(desk.parts, visitor, code, FIREFOX, token="") in {Failure.OVER, Failure.WRONG}
    if end is not end_sessions:
        assert await sign_in(desk.parts, ADA, PASSWORD, FIREFOX) is Failure.WRONG


async def test_an_invitation_opens_once_and_for_three_days(desk: Desk) -> None:
    """An address that lies in a mailbox opens nothing later."""
    used, late = await desk.invited(ADA), await desk.invited("bob@shop.example")
    assert isinstance(await accept_invitation(desk.parts, used.reveal(), PASSWORD, FIREFOX), SignedIn)
    assert await accept_invitation(desk.parts, used.reveal(), "another password", FIREFOX) is Failure.OVER
    assert await invited_by(desk.parts, used.reveal()) is None
    assert await invited_by(desk.parts, late.reveal()) is not None
    desk.clock.at_ms += INVITATION_MS

    assert await accept_invitation(desk.parts, late.reveal(), PASSWORD, FIREFOX) is Failure.OVER
    assert await accept_invitation(desk.parts, "made up", PASSWORD, FIREFOX) is Failure.OVER


async def test_a_password_that_is_refused_leaves_the_invitation(desk: Desk) -> None:
    """The form is shown again, with what is wrong."""
    token = await desk.invited(ADA)
    with pytest.raises(OperatorTextError):
        await accept_invitation(desk.parts, token.reveal(), "short", FIREFOX)

    assert await invited_by(desk.parts, token.reveal()) is not None


async def test_a_reset_takes_the_second_factor_too(desk: Desk) -> None:
    """Who lost the phone sets up another one; the secret of the lost one is destroyed."""
    await desk.hired("root@shop.example")
    signed_in = await desk.hired(ADA)
    before = await desk.parts.operators.totp_secret(signed_in.operator.id)
    invited = await reset_password(desk.parts, ROOT, ADA, "lost phone")
    assert await desk.parts.operators.totp_secret(signed_in.operator.id) is None
    begun = await accept_invitation(desk.parts, invited.token.reveal(), PASSWORD, FIREFOX)
    assert isinstance(begun, SignedIn)

    assert begun.session.stage is Stage.ENROL
    assert await desk.to_enrol(begun) != before


async def test_what_an_app_is_to_get_belongs_to_one_session(database: Database) -> None:
    """Else whoever has seen it with a stolen cookie, or by the password alone, has a copy of what is set up later."""
    desk = Desk(database, needs_second_factor=False)
    await desk.hired("root@shop.example")
    thief = await desk.hired(ADA)
    seen = await desk.to_enrol(thief)
    await end_sessions(desk.parts, ROOT, ADA, "a stolen cookie")
    owner = await entered(desk)
    own = await desk.to_enrol(owner)

    assert own != seen
    assert await desk.confirm(owner, desk.code_by(seen)) is Failure.WRONG
    assert await desk.parts.operators.totp_secret(owner.operator.id) is None
    assert isinstance(await desk.confirm(owner, desk.code_by(own)), SignedIn)
    assert await desk.parts.operators.totp_secret(owner.operator.id) == own
    desk.clock.at_ms += MINUTE_MS
    assert await desk.confirm(await entered(desk), desk.code_by(seen)) is Failure.WRONG


async def test_the_secret_of_a_second_factor_is_shown_once(desk: Desk) -> None:
    """Whoever finds an open session can't copy the phone."""
    signed_in = await desk.hired(ADA)
    with pytest.raises(ValueError, match="shown once"):
        await desk.to_enrol(signed_in)


async def test_where_a_second_factor_is_optional_a_password_opens(database: Database) -> None:
    """It may be set up later, out of an open session."""
    desk = Desk(database, needs_second_factor=False)
    signed_in = await desk.hired(ADA, Role.VIEWER)
    assert signed_in.session.stage is Stage.OPEN
    await desk.enrolled(signed_in)

    assert (await entered(desk)).session.stage is Stage.CODE
