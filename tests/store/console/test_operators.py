import msgspec
import pytest
from tests.store.console.samples import (
    ADA,
    INVITATION,
    PASSKEY,
    SESSION,
    acts_of,
    did,
    next_ada,
    operators_of,
    with_everything,
)

from payrelay.core.operators.operator import OperatorState, PasskeyChange
from payrelay.errors import Outdated
from payrelay.store.engine.database import Database
from payrelay.store.operators.operators import OperatorChange


async def test_an_operator_is_found_by_each_name(database: Database) -> None:
    """By id, e-mail address and what the identity provider calls them; the secret opens for nobody else's row."""
    operators = await with_everything(operators_of(database))

    assert await operators.get(ADA.id) == next_ada()
    assert await operators.by_email(ADA.email) == next_ada()
    assert await operators.list() == [next_ada()]
    assert (await operators.totp_secret(ADA.id) or "").__class__.__name__ == "Secret"
    assert await operators.get("opr_2") is None
    assert await operators.totp_secret("opr_2") is None


async def test_a_change_and_its_line_are_stored_together_or_not_at_all(database: Database) -> None:
    """An old version, a taken address or an ended invitation stores nothing, and no line tells of it."""
    operators = await with_everything(operators_of(database))
    lines = len(await acts_of(database).before(None, 10))
    refused = [
        OperatorChange(at_ms=3, act=did(3), changed=next_ada()),
        OperatorChange(at_ms=3, act=did(3), added=next_ada(id="opr_2", provider_subject=None)),
        OperatorChange(at_ms=3, act=did(3), ends_invitation="inv_2"),
        OperatorChange(at_ms=3, act=did(3), ends_session="ses_2"),
    ]
    for change in refused:
        with pytest.raises(Outdated):
            await operators.carry_out(change)

    assert len(await acts_of(database).before(None, 10)) == lines
    assert await operators.list() == [next_ada()]


async def test_ending_everything_ends_sessions_and_invitations_and_destroys_the_secret(database: Database) -> None:
    """Who is disabled keeps nothing that opens a page, also not the code on the phone."""
    operators = await with_everything(operators_of(database))
    disabled = next_ada(version=3, state=OperatorState.DISABLED, second_factor=None, act=3)
    await operators.carry_out(OperatorChange(at_ms=9, act=did(9), changed=disabled, ends_everything=True))

    assert await operators.sessions_of(ADA.id) == []
    session = await operators.session(SESSION.token_hash)
    assert session is not None
    assert session.ended_at_ms == 9
    invitation = await operators.invitation(INVITATION.token_hash)
    assert invitation is not None
    assert invitation.ended_at_ms == 9
    assert await operators.totp_secret(ADA.id) is None
    assert await operators.passkeys.of(ADA.id) == []


async def test_a_passkey_changes_from_what_was_read_or_not_at_all(database: Database) -> None:
    """Two browsers that show one passkey at one moment count on from one number; and nobody has another's passkey."""
    operators = await with_everything(operators_of(database))
    [known] = await operators.passkeys.of(ADA.id)
    assert known == msgspec.structs.replace(PASSKEY, act=2)
    used = msgspec.structs.replace(known, version=2, sign_count=5)
    await operators.carry_out(OperatorChange(at_ms=3, act=did(3), passkey=PasskeyChange(changed=used)))
    taken = msgspec.structs.replace(PASSKEY, id="psk_2", operator_id="opr_2")
    refused = [
        PasskeyChange(changed=used),
        PasskeyChange(added=taken),
        PasskeyChange(removed=msgspec.structs.replace(PASSKEY, operator_id="opr_2")),
    ]
    for change in refused:
        with pytest.raises(Outdated):
            await operators.carry_out(OperatorChange(at_ms=4, act=did(4), passkey=change))

    assert [each.sign_count for each in await operators.passkeys.of(ADA.id)] == [5]
    await operators.carry_out(OperatorChange(at_ms=5, act=did(5), passkey=PasskeyChange(removed=known)))
    assert await operators.passkeys.of(ADA.id) == []


async def test_an_invitation_is_used_once(database: Database) -> None:
    """Of two browsers with the address one gets in."""
    operators = await with_everything(operators_of(database))
    await operators.carry_out(OperatorChange(at_ms=3, act=did(3), ends_invitation=INVITATION.id))

    with pytest.raises(Outdated):
        await operators.carry_out(OperatorChange(at_ms=4, act=did(4), ends_invitation=INVITATION.id))


async def test_a_session_that_was_ended_is_not_seen_again(database: Database) -> None:
    """A request that is under way while somebody ends the session brings no digest back."""
    operators = await with_everything(operators_of(database))
    [session] = await operators.sessions_of(ADA.id)
    seen = await operators.see(session, 50)
    assert [each.seen_at_ms for each in await operators.sessions_of(ADA.id)] == [50]
    await operators.carry_out(OperatorChange(at_ms=60, act=did(60), ends_session=session.id))
    await operators.see(seen, 70)

    ended = await operators.session(SESSION.token_hash)
    assert ended is not None
    assert (ended.seen_at_ms, ended.ended_at_ms) == (50, 60)
    assert await operators.sessions_of(ADA.id) == []
