"""What is checked before an act of people is checked where it is stored: two act at one moment, or one too late."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import product

import pytest
from tests.console.device import Device
from tests.flows.console.desk import FIREFOX, MINUTE_MS, PASSWORD, ROOT, Desk, quick_passwords

from payrelay.clock import Clock
from payrelay.console.flows.cases.ask_gateway import ask_gateway
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
    confirm_code,
    sign_in,
    visitor_of,
)
from payrelay.console.rules.sign_in.passkeys import RelyingParty
from payrelay.console.runtime.passwords import Passwords
from payrelay.core.operators.operator import INVITATION_MS, SecondFactor, is_active_admin
from payrelay.core.operators.roles import Role
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.cases import add_note, assign
from payrelay.flows.operators.manage_operators import (
    NewOperator,
    add_operator,
    change_role,
    disable_operator,
    end_own_session,
    end_sessions,
    reset_password,
)
from payrelay.flows.operators.parts import Actor, acting
from payrelay.store import open_database
from payrelay.store.engine.database import Database, T, Unit

ADA, BOB = "ada@shop.example", "bob@shop.example"
PARTY = RelyingParty("https://console.example", "console.example")
Take = Callable[[Desk, Actor, str], Awaitable[object]]
ACCOUNT = ActTarget(
    noun="account", id="gateway", title="", account="gateway", principal="", state="", seen="open", acts=()
)


class Meeting:
    """Where writers wait for each other: each has read by then what the others are about to change."""

    def __init__(self) -> None:
        self.awaited = 0
        self._all = asyncio.Event()

    def of(self, writers: int) -> None:
        """Has so many writers meet next."""
        self.awaited, self._all = writers, asyncio.Event()

    async def join(self) -> None:
        """Waits for the others, where a meeting was called."""
        if self.awaited == 0:
            return
        self.awaited -= 1
        if self.awaited == 0:
            self._all.set()
        await self._all.wait()


class MeetingDatabase:
    """A database whose writers meet first."""

    def __init__(self, database: Database, meeting: Meeting) -> None:
        self._database = database
        self._meeting = meeting
        self.read = database.read
        self.read_page = database.read_page

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit, once everybody is here."""
        await self._meeting.join()
        return await self._database.write(unit, is_patient=is_patient)


@pytest.fixture
def meeting() -> Meeting:
    """Nobody waits yet."""
    return Meeting()


@pytest.fixture
async def desks(database: Database, url: str, meeting: Meeting) -> AsyncIterator[tuple[Desk, Desk]]:
    """Two services on one database, as far as operators see it, each with connections of its own."""
    elsewhere = await open_database(url, clock=Clock(), owner=False)
    one, other = (Desk(MeetingDatabase(each, meeting)) for each in (database, elsewhere))  # type: ignore[arg-type]
    yield one, other
    assert await one.is_whole()
    await elsewhere.close()


async def to_viewer(desk: Desk, actor: Actor, email: str) -> object:
    """Demotes somebody."""
    return await change_role(desk.parts, actor, email, Role.VIEWER, "why")


async def disable(desk: Desk, actor: Actor, email: str) -> object:
    """Disables somebody."""
    return await disable_operator(desk.parts, actor, email, "why")


async def reset(desk: Desk, actor: Actor, email: str) -> object:
    """Resets somebody's password."""
    return (await reset_password(desk.parts, actor, email, "why")).operator


@pytest.mark.parametrize("themselves", [True, False], ids=["themselves", "each other"])
async def test_two_administrators_who_go_at_one_moment_leave_one(
    desks: tuple[Desk, Desk], meeting: Meeting, *, themselves: bool
) -> None:
    """By whichever act, in the console or by two commands: of two at one moment one is refused, and one is left.

    A command may reset the last one, because it can also give the invitation.
    """
    one, other = desks
    left = None
    takes = (to_viewer, disable, reset)
    kinds = [each for each in product(takes, takes, (False, True)) if not (each[2] and reset in each[:2])]
    for number, (first, second, by_command) in enumerate(kinds):
        emails = [f"{name}{number}@shop.example" for name in ("ada", "bob")]
        people = [await one.hired(email) for email in emails]
        if left is not None:
            await disable(one, ROOT, left)
        ada, bob = (ROOT if by_command else acting(each.operator, each.session) for each in people)
        meeting.of(2)
        found = await asyncio.gather(
            first(one, ada, emails[0 if themselves else 1]),
            second(other, bob, emails[1 if themselves else 0]),
            return_exceptions=True,
        )

        assert sorted(type(each).__name__ for each in found) == ["Operator", "Refusal"], (number, found)
        [admin] = [each for each in await one.parts.operators.list() if is_active_admin(each)]
        left = admin.email


ACTS: dict[str, Take] = {
    "add_operator": lambda desk, by, _: add_operator(
        desk.parts, by, NewOperator(email="new@shop.example", name="New", role=Role.ADMIN), "why"
    ),
    "change_role": to_viewer,
    "disable_operator": disable,
    "reset_password": lambda desk, by, whom: reset_password(desk.parts, by, whom, "why"),
    "end_sessions": lambda desk, by, whom: end_sessions(desk.parts, by, whom, "why"),
    "add_note": lambda desk, by, _: add_note(desk.parts, desk.relay, by, ACCOUNT, seen="open.0", text="why"),
    "ask_gateway": lambda desk, by, _: ask_gateway(desk.parts, desk.cases, by, ("gateway", "A-1"), request_id="r"),
    "assign_case": lambda desk, by, whom: assign(
        desk.parts, desk.relay, by, ACCOUNT, seen="open.0", email=whom, reason="why"
    ),
}


async def ended(desk: Desk, by: SignedIn) -> None:
    """Ends the session, as its owner does in another browser."""
    assert await end_own_session(desk.parts, by.operator, by.session.id, acting(by.operator))


def removal_by(visitor: Visitor) -> Take:
    """Removes the own authenticator app."""
    return lambda desk, _by, _whom: remove_totp(desk.parts, visitor)


MEANWHILE: dict[str, Callable[[Desk, SignedIn], Awaitable[object]]] = {
    "demoted": lambda desk, by: to_viewer(desk, ROOT, by.operator.email),
    "disabled": lambda desk, by: disable(desk, ROOT, by.operator.email),
    "reset": lambda desk, by: reset_password(desk.parts, ROOT, by.operator.email, "why"),
    "session ended": ended,
}


async def test_whoever_lost_role_or_session_meanwhile_does_nothing(desk: Desk) -> None:
    """The request had read role and session before; what counts is what they are when the act is stored."""
    await desk.hired(ADA)
    await desk.hired(BOB)
    done: list[tuple[str, object]] = []
    for number, (why, change) in enumerate(MEANWHILE.items()):
        eve = await desk.hired(f"eve{number}@shop.example")
        visitor = await visitor_of(desk.parts, eve.token.reveal())
        assert visitor is not None
        actor = acting(*visitor)
        await change(desk, eve)
        lines = await desk.done()
        takes = ACTS | {"remove_totp": removal_by(visitor)}
        for name, take in takes.items():
            if why == "demoted" and name in {"ask_gateway", "remove_totp"}:
                continue  # whoever is a viewer may still ask, and has a version of the row that is no more
            try:
                await take(desk, actor, BOB)
                done.append((why, name))
            except Refusal as refusal:
                done += [] if refusal.code in {Code.FORBIDDEN, Code.CONFLICT} else [(why, name)]
        done += [(why, line) for line in (await desk.done())[len(lines) :]]

    assert done == []


class Interrupted(Passwords):
    """Takes so long to look at a password that something happens meanwhile."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._quick = quick_passwords()
        self._meanwhile = meanwhile

    async def fits(self, password_hash: str | None, password: str) -> bool:
        """Compares, then lets it happen."""
        found = await self._quick.fits(password_hash, password)
        await self._meanwhile()
        return found

    async def hash(self, password: str) -> str:
        """Hashes, then lets it happen."""
        hashed = await self._quick.hash(password)
        await self._meanwhile()
        return hashed


async def test_a_password_that_was_taken_away_while_it_was_compared_opens_nothing(database: Database) -> None:
    """Nor does it open a session without the second factor that was set up at that moment."""
    desk = Desk(database, needs_second_factor=False)
    await desk.hired("root@shop.example")
    found = {}
    for number, what in enumerate(("disabled", "reset", "second factor")):
        email = f"ada{number}@shop.example"
        ada = await desk.hired(email)

        async def meanwhile(what: str = what, ada: SignedIn = ada) -> None:
            if what == "second factor":
                await desk.enrolled(ada)
            else:
                await MEANWHILE[what](desk, ada)

        parts = dataclasses.replace(desk.parts, passwords=Interrupted(meanwhile))
        found[what] = await sign_in(parts, email, PASSWORD, FIREFOX)

    assert found == dict.fromkeys(found, Failure.WRONG)


async def test_an_invitation_that_ended_while_its_password_was_hashed_opens_nothing(desk: Desk) -> None:
    """Used up, revoked, or over, whichever came first."""
    await desk.hired("root@shop.example")

    async def over() -> None:
        desk.clock.at_ms += INVITATION_MS

    meanwhile: dict[str, Callable[[str, str], Awaitable[object]]] = {
        "used up": lambda _, token: accept_invitation(desk.parts, token, PASSWORD, FIREFOX),
        "revoked": lambda email, _: end_sessions(desk.parts, ROOT, email, "why"),
        "disabled": lambda email, _: disable_operator(desk.parts, ROOT, email, "why"),
        "made anew": lambda email, _: reset_password(desk.parts, ROOT, email, "why"),
        "over": lambda _email, _token: over(),
    }
    found = {}
    for number, (what, happens) in enumerate(meanwhile.items()):
        email = f"ada{number}@shop.example"
        token = (await desk.invited(email)).reveal()
        interrupted = Interrupted(lambda email=email, token=token, happens=happens: happens(email, token))  # type: ignore[misc]
        parts = dataclasses.replace(desk.parts, passwords=interrupted)
        found[what] = await accept_invitation(parts, token, "another good password", FIREFOX)

    assert found == dict.fromkeys(meanwhile, Failure.OVER)


async def test_two_sign_ins_with_one_code_at_one_moment_are_one(desks: tuple[Desk, Desk], meeting: Meeting) -> None:
    """Also at two processes, where each has read the operator before the other has written."""
    one, other = desks
    ada = await one.hired(ADA)
    one.clock.at_ms = other.clock.at_ms = ada.session.began_at_ms + MINUTE_MS
    halves = [await sign_in(each.parts, ADA, PASSWORD, FIREFOX) for each in desks]
    visitors = [
        await each.visitor(half) for each, half in zip(desks, halves, strict=True) if isinstance(half, SignedIn)
    ]
    code = await one.code(ada.operator)
    meeting.of(2)
    found = await asyncio.gather(
        *(
            confirm_code(each.parts, visitor, code, FIREFOX, token="")
            for each, visitor in zip(desks, visitors, strict=True)
        )
    )

    assert sorted(isinstance(each, SignedIn) for each in found) == [False, True]


async def test_a_passkeys_answer_that_comes_twice_at_one_moment_opens_one_session(
    desks: tuple[Desk, Desk], meeting: Meeting
) -> None:
    """Whoever could send it a second time, to another process, gets nothing; and it locks no passkey."""
    one, other = desks
    opened, device = await one.hired(ADA), Device(PARTY.origin)
    visitor, token = await one.visitor(opened), opened.token.reveal()
    asked = await ask_to_make(one.parts, visitor, PARTY, token)
    await add_passkey(one.parts, visitor, PasskeyAnswer(device.makes(asked), token, PARTY, FIREFOX), "phone")
    half = await sign_in(one.parts, ADA, PASSWORD, FIREFOX)
    assert isinstance(half, SignedIn)
    shown = await ask_to_show(one.parts, await one.visitor(half), PARTY, half.token.reveal())
    assert shown is not None
    answer = PasskeyAnswer(device.shows(shown), half.token.reveal(), PARTY, FIREFOX)
    visitors = [await each.visitor(half) for each in desks]
    meeting.of(2)
    found = await asyncio.gather(
        *(confirm_passkey(each.parts, visitor, answer) for each, visitor in zip(desks, visitors, strict=True))
    )

    assert sorted(each is Failure.OVER or isinstance(each, SignedIn) for each in found) == [True, True]
    assert sum(isinstance(each, SignedIn) for each in found) == 1
    [passkey] = await list_passkeys(other.parts, opened.operator)
    assert passkey.copied_at_ms is None


async def test_two_browsers_that_remove_the_last_two_second_factors_leave_one(
    desks: tuple[Desk, Desk], meeting: Meeting
) -> None:
    """Each has seen the other one, and only the first may go."""
    one, other = desks
    opened, device = await one.hired(ADA), Device(PARTY.origin)
    visitor, token = await one.visitor(opened), opened.token.reveal()
    asked = await ask_to_make(one.parts, visitor, PARTY, token)
    await add_passkey(one.parts, visitor, PasskeyAnswer(device.makes(asked), token, PARTY, FIREFOX), "phone")
    [passkey] = await list_passkeys(one.parts, opened.operator)
    first, second = await one.visitor(opened), await other.visitor(opened)
    meeting.of(2)
    found = await asyncio.gather(
        remove_passkey(one.parts, first, passkey.id), remove_totp(other.parts, second), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in found) == ["NoneType", "Refusal"]
    operator = await one.parts.operators.by_email(ADA)
    assert operator is not None
    assert operator.second_factor in {SecondFactor.TOTP, SecondFactor.PASSKEY}
