"""Operators for tests, and the store of one."""

from typing import Final

from tests.digests import CHAIN_KEY, digests_of

from payrelay.core.operators.confirmations import Confirmation, ConfirmationState
from payrelay.core.operators.operator import (
    ConsoleSession,
    Invitation,
    NewAct,
    Operator,
    OperatorState,
    Passkey,
    PasskeyChange,
    SecondFactor,
    Stage,
    token_hash,
)
from payrelay.core.operators.roles import Act, Role
from payrelay.core.secret import Secret
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.operators.confirmations import Confirmations
from payrelay.store.operators.operators import OperatorChange, Operators

SEAL: Final = Seal((b"k" * 32,))
ADA: Final = Operator(
    id="opr_1",
    email="ada@shop.example",
    name="Ada",
    role=Role.ADMIN,
    state=OperatorState.ACTIVE,
    password_hash="$argon2id$1",
    second_factor=SecondFactor.TOTP,
    totp_step=7,
    provider_subject="s1",
    version=1,
    act=0,
    created_at_ms=1,
    changed_at_ms=1,
)
INVITATION: Final = Invitation(
    id="inv_1", operator_id=ADA.id, token_hash=token_hash("i"), made_at_ms=1, expires_at_ms=100, ended_at_ms=None
)
SESSION: Final = ConsoleSession(
    id="ses_1",
    operator_id=ADA.id,
    token_hash=token_hash("s"),
    stage=Stage.OPEN,
    began_at_ms=1,
    seen_at_ms=1,
    ends_at_ms=1_000,
    client="192.0.2.1",
    browser="Firefox",
    act=0,
    ended_at_ms=None,
)

PASSKEY: Final = Passkey(
    id="psk_1",
    operator_id=ADA.id,
    credential_id="Y3JlZGVudGlhbA",
    credential="a2V5",
    host="console.example",
    name="phone",
    sign_count=1,
    made_at_ms=2,
    used_at_ms=3,
    copied_at_ms=4,
    version=1,
    act=0,
)
CONFIRMATION: Final = Confirmation(
    id="cnf_1",
    act_name=Act.REFUND,
    subject="operation/op_1",
    account="gateway",
    principal="shop",
    order_id="A-1",
    amount_minor=5,
    currency="LKR",
    fields='{"amount_minor":"5"}',
    seen="2.0",
    state=ConfirmationState.SHOWN,
    made_by="opr_1",
    proposed_by=None,
    confirmed_by=None,
    reason="",
    operation_id=None,
    said="",
    version=1,
    act=0,
    made_at_ms=10,
    changed_at_ms=10,
)


def did(number: int = 1, **members: object) -> NewAct:
    """Gives what somebody did, for the history."""
    own = {"at_ms": number, "operator_id": "", "name": "root", "act": Act.ADD_OPERATOR, "subject": ADA.id}
    return NewAct(**(own | members))  # type: ignore[arg-type]


def acts_of(database: Database) -> OperatorActs:
    """Makes the history of a database."""
    return OperatorActs(database, CHAIN_KEY)


def confirmations_of(database: Database) -> Confirmations:
    """Makes what operators are asked to confirm."""
    return Confirmations(database, digests_of(database), acts_of(database))


def operators_of(database: Database, seal: Seal = SEAL) -> Operators:
    """Makes the operators of a database."""
    return Operators(database, seal, digests_of(database), acts_of(database))


async def with_everything(operators: Operators) -> Operators:
    """Adds an operator with an invitation, a session and second factors."""
    added = OperatorChange(at_ms=1, act=did(), added=ADA, invitation=INVITATION, session=SESSION)
    await operators.carry_out(added)
    secret = Secret("JBSWY3DPEHPK3PXP")
    passkey = PasskeyChange(added=PASSKEY)
    changed = OperatorChange(at_ms=2, act=did(2), changed=next_ada(), totp_secret=secret, passkey=passkey)
    await operators.carry_out(changed)
    return operators


def next_ada(**members: object) -> Operator:
    """Gives the second version of the operator."""
    own = {name: getattr(ADA, name) for name in Operator.__struct_fields__}
    return Operator(**(own | {"version": 2, "act": 2} | members))
