from collections.abc import Awaitable, Callable

import pytest
from tests.flows.console.desk import FIREFOX, ROOT, Desk

from payrelay.console.flows.sign_in import accept_invitation, visitor_of
from payrelay.core.operators.operator import OperatorState
from payrelay.core.operators.roles import Act, Role, may
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.manage_operators import (
    NewOperator,
    add_operator,
    change_role,
    disable_operator,
    end_own_session,
    end_sessions,
    list_operators,
    reset_password,
)
from payrelay.flows.operators.parts import acting

ADA, BOB = "ada@shop.example", "bob@shop.example"
NEW = NewOperator(email="new@shop.example", name="New", role=Role.ADMIN)


@pytest.mark.parametrize("role", Role)
async def test_each_role_by_each_act(desk: Desk, role: Role) -> None:
    """Every flow asks the table of roles itself, so that no page can forget to; what is refused leaves no line."""
    await desk.hired(ADA)
    await desk.hired(BOB)
    eve = await desk.hired("eve@shop.example", role)
    actor = acting(eve.operator, eve.session)
    flows: dict[Act, Callable[[], Awaitable[object]]] = {
        Act.LIST_OPERATORS: lambda: list_operators(desk.parts, actor),
        Act.ADD_OPERATOR: lambda: add_operator(desk.parts, actor, NEW, "why"),
        Act.CHANGE_ROLE: lambda: change_role(desk.parts, actor, BOB, Role.VIEWER, "why"),
        Act.END_SESSIONS: lambda: end_sessions(desk.parts, actor, BOB, "why"),
        Act.RESET_PASSWORD: lambda: reset_password(desk.parts, actor, BOB, "why"),
        Act.DISABLE_OPERATOR: lambda: disable_operator(desk.parts, actor, BOB, "why"),
    }
    before = len(await desk.done())
    for act, flow in flows.items():
        if may(role, act):
            await flow()
            continue
        with pytest.raises(Refusal) as refused:
            await flow()
        assert refused.value.code is Code.FORBIDDEN

    lines = await desk.parts.acts.before(None, len(await desk.done()) - before)
    assert [line.act for line in reversed(lines)] == [act for act in list(flows)[1:] if may(role, act)]
    assert all(line.reason == "why" and line.operator_id == actor.operator.id for line in lines if actor.operator)


async def test_two_operators_never_have_one_address(desk: Desk) -> None:
    """Else one of them would sign in as the other."""
    await desk.invited(ADA)
    with pytest.raises(Refusal, match="already"):
        await desk.invited(ADA)


async def test_the_last_administrator_stays(desk: Desk) -> None:
    """Else nobody could let anybody in; an administrator who has not accepted yet is none."""
    await desk.hired(ADA)
    await desk.invited(BOB)
    with pytest.raises(Refusal, match="last administrator"):
        await disable_operator(desk.parts, ROOT, ADA, "why")
    with pytest.raises(Refusal, match="last administrator"):
        await change_role(desk.parts, ROOT, ADA, Role.VIEWER, "why")
    await desk.hired("eve@shop.example")

    assert (await disable_operator(desk.parts, ROOT, ADA, "why")).state is OperatorState.DISABLED


async def test_only_a_command_resets_the_last_administrator(desk: Desk) -> None:
    """In the console nobody would be left who could send the invitation; at the machine somebody can."""
    ada = await desk.hired(ADA)
    await desk.invited(BOB)
    with pytest.raises(Refusal, match="last administrator"):
        await reset_password(desk.parts, acting(ada.operator, ada.session), ADA, "lost phone")

    assert (await reset_password(desk.parts, ROOT, ADA, "lost phone")).operator.state is OperatorState.INVITED


async def test_a_role_changes_with_the_next_request(desk: Desk) -> None:
    """Nobody keeps what they could do until they sign in again."""
    await desk.hired(ADA)
    bob = await desk.hired(BOB)
    await change_role(desk.parts, ROOT, BOB, Role.VIEWER, "why")
    visitor = await visitor_of(desk.parts, bob.token.reveal())

    assert visitor is not None
    assert visitor.operator.role is Role.VIEWER
    [line] = await desk.parts.acts.before(None, 1)
    assert (line.name, line.details) == ("root", f"{BOB}, role viewer, was admin")


async def test_a_disabled_operator_is_invited_again(desk: Desk) -> None:
    """Who comes back gets an invitation; the one from before the end opens nothing."""
    await desk.hired(ADA)
    old = await desk.invited(BOB)
    await disable_operator(desk.parts, ROOT, BOB, "left")
    assert str(await accept_invitation(desk.parts, old.reveal(), "correct horse", FIREFOX)) == "over"
    again = await reset_password(desk.parts, ROOT, BOB, "is back")

    assert again.operator.state is OperatorState.INVITED


async def test_an_operator_ends_own_sessions_alone(desk: Desk) -> None:
    """A lost phone's session is ended by its owner; nobody ends another's by its id."""
    ada, bob = await desk.hired(ADA), await desk.hired(BOB)
    assert not await end_own_session(desk.parts, bob.operator, ada.session.id, acting(bob.operator))
    assert await visitor_of(desk.parts, ada.token.reveal()) is not None
    assert await end_own_session(desk.parts, ada.operator, ada.session.id, acting(ada.operator))
    assert not await end_own_session(desk.parts, ada.operator, ada.session.id, acting(ada.operator))
    assert await visitor_of(desk.parts, ada.token.reveal()) is None


async def test_an_unknown_address_is_said(desk: Desk) -> None:
    """Whoever mistypes it learns that nothing was done."""
    with pytest.raises(Refusal) as refused:
        await end_sessions(desk.parts, ROOT, "nobody@shop.example", "why")
    assert refused.value.code is Code.NOT_FOUND
