import re
from itertools import pairwise
from pathlib import Path

import pytest

from payrelay.core.operators.roles import MAY, SEES, TO_CONFIRM, Act, Field, Role, may, sees

DOCS = Path(__file__).parents[3] / "docs" / "console.md"
OWN = (
    Act.SIGN_IN,
    Act.SIGN_OUT,
    Act.ACCEPT_INVITATION,
    Act.LINK_PROVIDER,
    Act.ENROL_SECOND_FACTOR,
    Act.REMOVE_SECOND_FACTOR,
    Act.LOCK_PASSKEY,
    Act.END_OWN_SESSION,
)
TABLE = {
    # act                     viewer support operator admin
    **dict.fromkeys(OWN, (True, True, True, True)),
    Act.LOOK: (True, True, True, True),
    Act.ASK_GATEWAY: (True, True, True, True),
    Act.ASSIGN_CASE: (False, True, True, True),
    Act.ADD_NOTE: (False, True, True, True),
    Act.CONFIRM: (False, True, True, True),
    Act.PROPOSE: (False, True, True, True),
    Act.WITHDRAW: (False, True, True, True),
    Act.REPLAY_NOTIFICATION: (False, True, True, True),
    Act.DECIDE: (False, False, True, True),
    Act.REFUND: (False, False, True, True),
    Act.CAPTURE: (False, False, True, True),
    Act.VOID: (False, False, True, True),
    Act.CANCEL_SUBSCRIPTION: (False, False, True, True),
    Act.RETRY_SUBSCRIPTION: (False, False, True, True),
    Act.CLOSE_CHECKOUT: (False, False, True, True),
    Act.PAUSE_ACCOUNT: (False, False, True, True),
    Act.RESUME_ACCOUNT: (False, False, True, True),
    Act.REPLAY_EVENT: (False, False, True, True),
    Act.SEND_TEST_EVENT: (False, False, True, True),
    Act.ERASE_CUSTOMER: (False, False, False, True),
    Act.REVOKE_KEY: (False, False, False, True),
    Act.READ_ACTS: (False, False, True, True),
    Act.LIST_OPERATORS: (False, False, False, True),
    Act.ADD_OPERATOR: (False, False, False, True),
    Act.CHANGE_ROLE: (False, False, False, True),
    Act.DISABLE_OPERATOR: (False, False, False, True),
    Act.RESET_PASSWORD: (False, False, False, True),
    Act.END_SESSIONS: (False, False, False, True),
    Act.LOOK_AT_BOOKS: (False, False, True, True),
    Act.IMPORT_STATEMENT: (False, False, True, True),
    Act.COMPARE_BOOKS: (False, False, True, True),
    Act.CLOSE_DIFFERENCE: (False, False, True, True),
    Act.CLOSE_DAY: (False, False, False, True),
    Act.IMPORT_EXISTING: (False, False, False, True),
}
CELLS = [(role, act, row[number]) for act, row in TABLE.items() for number, role in enumerate(Role)]


@pytest.mark.parametrize(("role", "act", "is_allowed"), CELLS)
def test_each_cell_of_the_table_of_roles(role: Role, act: Act, *, is_allowed: bool) -> None:
    """Written down a second time, so that nobody widens a role by a slip."""
    assert may(role, act) is is_allowed


def test_the_table_is_whole() -> None:
    """A new act is decided for each role here too; and each role may do what the one before may."""
    assert TABLE.keys() == set(Act)
    assert MAY.keys() == set(Role)
    roles = list(Role)
    assert all(MAY[lower] <= MAY[higher] and SEES[lower] <= SEES[higher] for lower, higher in pairwise(roles))


FIELDS = {
    # field                  viewer support operator admin
    Field.IDEMPOTENCY_KEY: (False, True, True, True),
    Field.CUSTOMER: (False, True, True, True),
    Field.CARD: (False, True, True, True),
    Field.WORDS: (False, True, True, True),
    Field.ENDPOINT_ADDRESS: (False, False, True, True),
}


def test_each_cell_of_the_table_of_fields() -> None:
    """Written down a second time, too: what a role sees is widened by nobody's slip."""
    assert {field: tuple(sees(role, field) for role in Role) for field in Field} == FIELDS
    assert SEES.keys() == set(Role)


def test_the_tables_of_the_docs_say_the_same() -> None:
    """Whoever gives somebody a role reads there what it may do and sees."""
    lines = [line.strip("| ").split(" | ") for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    rows = [line for line in lines if set(line[1:]) <= {"yes", "no"} and len(line) == 1 + len(Role)]
    told = {name: tuple(each == "yes" for each in row[1:]) for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    known = {act.value: tuple(may(role, act) for role in Role) for act in Act} | FIELDS

    assert {name: cells for name, cells in told.items() if cells != known[name]} == {}
    assert {*Field, *TO_CONFIRM} - {Act.CLOSE_DIFFERENCE, Act.CLOSE_DAY} <= told.keys()
