"""Adds operators, changes their roles, ends what they may do; from the console and from commands alike.

Whoever acts needs the role for it, and has shown the second factor shortly before (``Actor.require_recent`` raises
NotRecent). Nobody takes the last administrator away in the console: both are decided where it is stored. A command may
reset the last one's password, because nobody else can help them.
"""

from typing import NamedTuple

import msgspec

from payrelay.core.operators.operator import (
    ConsoleSession,
    Invitation,
    Operator,
    OperatorAct,
    OperatorState,
    is_active_admin,
    is_live,
)
from payrelay.core.operators.roles import Act, Role
from payrelay.core.secret import Secret
from payrelay.errors import Code, Outdated, Refusal
from payrelay.flows.operators.parts import CHANGED_MEANWHILE, Actor, OperatorParts, new_invitation, next_of
from payrelay.runtime.ids import new_id
from payrelay.store.operators.operators import OperatorChange


class Invited(NamedTuple):
    """An operator with an invitation; only this result has the text of its token."""

    operator: Operator
    invitation: Invitation
    token: Secret


class NewOperator(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to add; the texts are as ``core.operators.operator`` reads them."""

    email: str
    name: str
    role: Role


async def list_operators(parts: OperatorParts, actor: Actor) -> list[Operator]:
    """Returns all operators. Raises Refusal (forbidden), StoreError."""
    actor.require(Act.LIST_OPERATORS)
    return await parts.operators.list()


async def list_sessions(parts: OperatorParts, actor: Actor, operator: Operator) -> list[ConsoleSession]:
    """Returns the sessions of an operator that go on, newest first. Raises Refusal (forbidden), StoreError."""
    actor.require(Act.LIST_OPERATORS)
    now_ms = parts.clock.now_ms()
    return [each for each in await parts.operators.sessions_of(operator.id) if is_live(each, operator, now_ms)]


async def read_acts(parts: OperatorParts, actor: Actor, *, before: int | None, limit: int) -> list[OperatorAct]:
    """Returns what operators did before a line, newest first. Raises Refusal (forbidden), StoreError."""
    actor.require(Act.READ_ACTS)
    return await parts.acts.before(before, limit)


async def add_operator(parts: OperatorParts, actor: Actor, new: NewOperator, reason: str) -> Invited:
    """Adds an operator with an invitation.

    Raises Refusal: forbidden; conflict where the e-mail address is an operator's. Raises StoreError.
    """
    actor.require_recent(Act.ADD_OPERATOR, parts.clock.now_ms())
    if await parts.operators.by_email(new.email) is not None:
        raise _taken(new.email)
    now_ms = parts.clock.now_ms()
    operator = Operator(
        id=new_id("opr", now_ms),
        email=new.email,
        name=new.name,
        role=new.role,
        state=OperatorState.INVITED,
        password_hash=None,
        second_factor=None,
        totp_step=0,
        provider_subject=None,
        version=1,
        act=0,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )
    invitation, token = new_invitation(operator.id, now_ms)
    details = f"{new.email}, role {new.role}"
    act = actor.did(Act.ADD_OPERATOR, operator.id, at_ms=now_ms, reason=reason, details=details)
    try:
        await parts.operators.carry_out(OperatorChange(at_ms=now_ms, act=act, added=operator, invitation=invitation))
    except Outdated:
        raise _taken(new.email) from None
    return Invited(operator, invitation, token)


async def change_role(parts: OperatorParts, actor: Actor, email: str, role: Role, reason: str) -> Operator:
    """Gives an operator another role, from the next request on.

    Raises Refusal: forbidden; not_found; conflict for the last administrator, and where somebody else was quicker.
    """
    operator = await _wanted(parts, actor, Act.CHANGE_ROLE, email)
    now_ms = parts.clock.now_ms()
    details = f"{email}, role {role}, was {operator.role}"
    act = actor.did(Act.CHANGE_ROLE, operator.id, at_ms=now_ms, reason=reason, details=details)
    changed = next_of(operator, now_ms, role=role)
    leaves_admin = is_active_admin(operator) and role is not Role.ADMIN
    await _carry_out(parts, OperatorChange(at_ms=now_ms, act=act, changed=changed, leaves_admin=leaves_admin))
    return changed


async def disable_operator(parts: OperatorParts, actor: Actor, email: str, reason: str) -> Operator:
    """Disables an operator, and ends every session and invitation; may be repeated.

    Raises Refusal: forbidden; not_found; conflict for the last administrator, and where somebody else was quicker.
    """
    operator = await _wanted(parts, actor, Act.DISABLE_OPERATOR, email)
    now_ms = parts.clock.now_ms()
    act = actor.did(Act.DISABLE_OPERATOR, operator.id, at_ms=now_ms, reason=reason, details=email)
    changed = next_of(operator, now_ms, state=OperatorState.DISABLED, password_hash=None, second_factor=None)
    leaves_admin = is_active_admin(operator)
    await _carry_out(
        parts,
        OperatorChange(at_ms=now_ms, act=act, changed=changed, ends_everything=True, leaves_admin=leaves_admin),
    )
    return changed


async def reset_password(parts: OperatorParts, actor: Actor, email: str, reason: str) -> Invited:
    """Takes password and second factor from an operator, ends the sessions, and makes an invitation to choose anew.

    The link to an account at the sign-in provider is taken as well. A disabled operator is invited again by it. Raises
    Refusal: forbidden; not_found; conflict for the last administrator, unless a command does it, and where somebody
    else was quicker.
    """
    operator = await _wanted(parts, actor, Act.RESET_PASSWORD, email)
    now_ms = parts.clock.now_ms()
    invitation, token = new_invitation(operator.id, now_ms)
    act = actor.did(Act.RESET_PASSWORD, operator.id, at_ms=now_ms, reason=reason, details=email)
    changed = next_of(
        operator,
        now_ms,
        state=OperatorState.INVITED,
        password_hash=None,
        second_factor=None,
        provider_subject=None,
    )
    change = OperatorChange(
        at_ms=now_ms,
        act=act,
        changed=changed,
        ends_everything=True,
        leaves_admin=is_active_admin(operator) and actor.operator is not None,
        invitation=invitation,
    )
    await _carry_out(parts, change)
    return Invited(changed, invitation, token)


async def end_sessions(parts: OperatorParts, actor: Actor, email: str, reason: str) -> int:
    """Ends all sessions of an operator, and open invitations; returns how many sessions there were.

    Raises Refusal: forbidden; not_found; conflict where somebody else was quicker.
    """
    operator = await _wanted(parts, actor, Act.END_SESSIONS, email)
    live = await parts.operators.sessions_of(operator.id)
    now_ms = parts.clock.now_ms()
    act = actor.did(Act.END_SESSIONS, operator.id, at_ms=now_ms, reason=reason, details=email)
    await _carry_out(
        parts, OperatorChange(at_ms=now_ms, act=act, changed=next_of(operator, now_ms), ends_everything=True)
    )
    return len(live)


async def end_own_session(parts: OperatorParts, operator: Operator, session_id: str, actor: Actor) -> bool:
    """Ends one of the operator's own sessions, such as that of a lost phone; False where it had ended."""
    own: list[ConsoleSession] = await parts.operators.sessions_of(operator.id)
    if session_id not in {each.id for each in own}:
        return False
    now_ms = parts.clock.now_ms()
    act = actor.did(Act.END_OWN_SESSION, session_id, at_ms=now_ms)
    try:
        await parts.operators.carry_out(OperatorChange(at_ms=now_ms, act=act, ends_session=session_id))
    except Outdated:
        return False
    return True


async def _wanted(parts: OperatorParts, actor: Actor, act: Act, email: str) -> Operator:
    actor.require_recent(act, parts.clock.now_ms())
    operator = await parts.operators.by_email(email)
    if operator is None:
        raise Refusal(Code.NOT_FOUND, f"no operator has the address {email}")
    return operator


async def _carry_out(parts: OperatorParts, change: OperatorChange) -> None:
    try:
        await parts.operators.carry_out(change)
    except Outdated:
        raise Refusal(Code.CONFLICT, CHANGED_MEANWHILE) from None


def _taken(email: str) -> Refusal:
    return Refusal(Code.CONFLICT, f"an operator has the address {email} already")
