"""What each role sees: every page, every table that is saved and every live page, against one written table."""

import html
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from tests.console.browsing import Window
from tests.console.stored_secrets import (
    CARD,
    CHECKOUT_ID,
    COLLEAGUE,
    CUSTOMER_ID,
    DOUBTED,
    INVITED,
    NOTIFICATION_ID,
    OF_DETAILS,
    OP,
    ORDER,
    Written,
    all_that_is_stored,
    named,
    store_all,
    write,
)
from tests.console.test_books import Bureau, bureau_in
from tests.flows.reconciliation.test_day import DAY, PAID
from tests.store.test_row_digests import schema

from payrelay.console.routes import ROUTES
from payrelay.core.operators.roles import MAY, Act, Role
from payrelay.core.outcomes import Reading
from payrelay.flows.operators.acts.of_relay import ACTS_OF_RELAY
from payrelay.reconciliation.acts.of_books import ACTS_OF_BOOKS

NOBODY: Final[frozenset[Role]] = frozenset()
ADMIN: Final = frozenset({Role.ADMIN})
FROM_OPERATOR: Final = ADMIN | {Role.OPERATOR}
FROM_SUPPORT: Final = FROM_OPERATOR | {Role.SUPPORT}
EVERYBODY: Final = frozenset(Role)

SEEN_BY: Final = {
    "operations.order_id": EVERYBODY,
    "operations.principal": EVERYBODY,
    "operations.request_id": EVERYBODY,
    "operations.idempotency_key": FROM_SUPPORT,
    "operations.sealed_call/items": NOBODY,
    "operations.sealed_call/customer_token": NOBODY,
    "operations.sealed_call/custom_1": NOBODY,
    "operations.sealed_call/notify_url": NOBODY,
    "operations.sealed_answer/body": NOBODY,
    "history.evidence/gateway_msg": EVERYBODY,
    "history.evidence/operator": EVERYBODY,
    "history.evidence/insisted": EVERYBODY,
    "history.evidence/reason": FROM_SUPPORT,
    "customers.sealed_names/reference": FROM_SUPPORT,
    "customers.sealed_names/label": FROM_SUPPORT,
    "customers.sealed_names/method": FROM_SUPPORT,
    "customers.sealed_names/card_no_masked": FROM_SUPPORT,
    "customers.sealed_names/card_expiry": FROM_SUPPORT,
    "customers.sealed_holder": NOBODY,
    "customers.sealed_token": NOBODY,
    "checkouts.sealed_reference": FROM_SUPPORT,
    **{f"checkouts.sealed/{name}": NOBODY for name in OF_DETAILS},
    "notifications.sealed_body": NOBODY,
    "notifications.accepted_by": EVERYBODY,
    "notifications.accepted_because": FROM_SUPPORT,
    "accepted_tokens.sealed_token": NOBODY,
    "endpoints.sealed_url/path": FROM_OPERATOR,
    "endpoints.sealed_url/host": EVERYBODY,
    "endpoints.label": EVERYBODY,
    "endpoints.reason": EVERYBODY,
    "endpoints.sealed_secret": NOBODY,
    "endpoints.sealed_older": NOBODY,
    "deliveries.last_failure": EVERYBODY,
    "events.data": EVERYBODY,
    "access_tokens.sealed_token": NOBODY,
    "gateway/record": NOBODY,
    "readings.sealed": NOBODY,
    "paused_accounts.operator": EVERYBODY,
    "paused_accounts.reason": FROM_SUPPORT,
    "meta.value/note": FROM_SUPPORT,
    "operators.email": EVERYBODY,
    "operators.name": ADMIN,
    "operators.password_hash": NOBODY,
    "operators.sealed_totp": NOBODY,
    "operator_invitations.token_hash/token": NOBODY,
    "console_sessions.token_hash/token": NOBODY,
    "console_sessions.browser": ADMIN,
    "console_sessions.client": ADMIN,
    "operator_acts.reason/note": FROM_SUPPORT,
    "operator_acts.reason/assign": FROM_SUPPORT,
    "operator_acts.reason/invite": FROM_OPERATOR,
    "operator_acts.details": FROM_SUPPORT,
    "console_confirmations.reason": FROM_SUPPORT,
    "console_confirmations.fields/description": FROM_OPERATOR,
    "differences.closed_reason": FROM_OPERATOR,
    "reconciled_days.closed_reason": FROM_OPERATOR,
}
"""By column, and what lies in it: the roles that see it on some page. What isn't shown is sealed, or a hash."""

_PLAIN: Final = """
    account accounts act act_name allowance anchor answer_digest bearer booked_on bound_customer_id chain checkout_id
    checksum claim closed_by closed_history concern confirmed_by consumer content credential credential_id currency
    customer_id day digest endpoint_id event event_id finding fingerprint given_to guard hash holding
    host id identity imported_by key_hash kind made_by merchant message_type movement notification_id
    occasions operation_id operator_id order_id outbox.data owner payment payment_id payout_id place previous principal
    process profile proposed_by provider_subject reached reading reference_hash report request_id rests_on result_ref
    role row_digest row_name said said_by scopes sealed_key second_factor secret_hash seen seen_state signature source
    stage state status subject subscription_id summary token_hash told told_next_on told_state total type types url_hash
    verdict way why word console_challenges.name meta.name
    operator_acts.name operator_passkeys.name principal_groups.name schema_version.name statement_files.name
    """
PLAIN: Final = frozenset(_PLAIN.split())
"""The other columns with texts, in whatever table: ids, words of the program, hashes, who did something, and what a
shop calls its things. The claim of an operation has its Idempotency-Key again."""

PAGES: Final = {
    "/console/assets/console.css": (),
    "/console/assets/live.js": (),
    "/console/assets/passkeys.js": (),
    "/console/sign-in": (),
    "/console/sign-in/provider": (),
    "/console/sign-in/provider/back": (),
    "/console/invitations/{token}": (),
    "/console/code": (),
    "/console/": ("/console/",),
    "/console/account": ("/console/account",),
    "/console/account/second-factor": ("/console/account/second-factor",),
    "/console/find": (
        f"/console/find?q={ORDER}",
        f"/console/find?q={CUSTOMER_ID}",
        f"/console/find?q={CARD[-4:]}",
        "/console/find?account=gateway",
        "/console/find?kind=checkout",
    ),
    "/console/find.csv": (f"/console/find.csv?q={ORDER}", f"/console/find.csv?q={CARD[-4:]}"),
    "/console/orders/{account}/{order}": (f"/console/orders/gateway/{ORDER}",),
    "/console/operations/{operation}": (f"/console/operations/{OP}", f"/console/operations/{DOUBTED}"),
    "/console/overview": ("/console/overview",),
    "/console/live": tuple(
        f"/console/live?page=/console/{page}" for page in ("queue", "overview", f"orders/gateway/{ORDER}")
    ),
    "/console/queue": ("/console/queue",),
    "/console/act/{noun}/{id}": tuple(
        f"/console/act/{thing}"
        for thing in (
            f"operation/{OP}",
            f"operation/{DOUBTED}",
            f"payment/gateway~{PAID.partition(',')[0]}",
            f"checkout/{CHECKOUT_ID}",
            "subscription/gateway~420075000001",
            f"customer/{CUSTOMER_ID}",
            "account/gateway",
            f"notification/{NOTIFICATION_ID}",
            "endpoint/end_1",
            "key/{key}",
            f"day/gateway~{DAY}",
            f"month/gateway~{DAY:%Y-%m}",
            "difference/{difference}",
        )
    ),
    "/console/confirmations/{confirmation}": ("{decision}", "{refund}", "{replay}", "{closing}"),
    "/console/reconciliation": (f"/console/reconciliation?month={DAY:%Y-%m}",),
    "/console/reconciliation.csv": (f"/console/reconciliation.csv?month={DAY:%Y-%m}",),
    "/console/reconciliation/{account}/{day}": (f"/console/reconciliation/gateway/{DAY}",),
    "/console/reconciliation/{account}/{day}/list.csv": (f"/console/reconciliation/gateway/{DAY}/list.csv",),
    "/console/acts": ("/console/acts",),
    "/console/operators": ("/console/operators",),
    "/console/operators/{email}": (f"/console/operators/{COLLEAGUE}", f"/console/operators/{INVITED}"),
}
"""The addresses of each page, at which there are rows. Those before a sign-in is complete know no row yet."""


NEEDED: Final = {
    "{decision}": Act.DECIDE,
    "{refund}": Act.REFUND,
    "{replay}": Act.REPLAY_NOTIFICATION,
    "{closing}": Act.CLOSE_DIFFERENCE,
    **{f"/console/act/{noun}/": needed for noun, needed in ACTS_OF_BOOKS.seen_by.items()},
}
"""What a role must be allowed for an address, beside what its page needs; by how the address begins."""
NOT_SENT: Final = {"/console/sign-out", "/console/code", "/console/code/passkey", "/console/passkeys"}
"""Forms that end or change the own session; what they answer shows nothing that is stored."""
RECORD: Final = Reading(
    code=None, msg="", raw_msg=b'""', raw_data=f'[{{"customer":{{"phone":"{named("gateway/record")}"}}}}]'.encode()
)
"""What the gateway has of an order."""
IN_FORMS: Final = {
    "noun": "operation",
    "id": DOUBTED,
    "account": "gateway",
    "order": ORDER,
    "email": COLLEAGUE,
    "session": "ses_1",
    "passkey": "psk_1",
}
NOT_STORED: Final = [
    *("meta.value/note", "operator_invitations.token_hash/token", "console_sessions.token_hash/token"),
    "gateway/record",
]
"""Of the table, what is a hash in the database, or comes from elsewhere."""


@pytest.fixture
async def bureau(tmp_path: Path) -> AsyncIterator[Bureau]:
    """Gives a console in which everything is stored, and a second person decides."""
    made = await bureau_in(tmp_path, frozenset({Act.DECIDE}))
    await store_all(made)
    yield made
    await made.close()


@pytest.fixture
async def written(bureau: Bureau) -> Written:
    """Has operators write whatever they can."""
    return await write(bureau)


def test_every_page_and_everything_that_is_stored_is_in_the_tables() -> None:
    """A new page, a thing with a page of its own, or a new column is decided upon before anybody sees it."""
    texts = {
        (table, column)
        for table, columns in schema().items()
        for column, each in columns.items()
        if each.kind in {"TEXT", "BLOB"}
    }
    decided = {name.partition("/")[0] for name in SEEN_BY} | PLAIN

    assert {f"{table}.{column}" for table, column in texts if column not in decided} - decided == set()
    assert PAGES.keys() == {route.path for route in ROUTES if route.method == "GET"}
    assert {address.split("/")[3] for address in PAGES["/console/act/{noun}/{id}"]} == {
        *ACTS_OF_RELAY.readers,
        *ACTS_OF_BOOKS.readers,
    }


async def test_what_is_looked_for_is_really_there(bureau: Bureau, written: Written) -> None:
    """Otherwise its absence from every page would say nothing."""
    stored = await all_that_is_stored(bureau.desk.database)

    assert sorted(name for name in SEEN_BY if written.text_in(name) not in stored) == sorted(NOT_STORED)


async def test_each_role_sees_what_the_table_says_and_nothing_else(bureau: Bureau, written: Written) -> None:
    """On every page, in every table that is saved, on every live page, and in the answers to forms that are refused."""
    seen = dict.fromkeys(SEEN_BY, NOBODY)
    for role in Role:
        window = await bureau.window(f"reader-{role}", role)
        shown = [text async for text in every_page(window, role, written)]
        shown += [text async for text in every_form(bureau, window, role, written)]
        text = "\n".join(shown)
        for name in SEEN_BY:
            if written.text_in(name) in text:
                seen[name] |= {role}

    assert {name: (roles, SEEN_BY[name]) for name, roles in seen.items() if roles != SEEN_BY[name]} == {}


async def every_page(window: Window, role: Role, written: Written) -> AsyncIterator[str]:
    """Opens every page; gives what it shows. Each is there, unless the role may not open it."""
    for route in (each for each in ROUTES if each.method == "GET"):
        for address in PAGES[route.path]:
            needed = {route.act} | {act for beginning, act in NEEDED.items() if address.startswith(beginning)}
            answer = await window.send("GET", address.format(**written.names))
            assert answer.status == (200 if needed <= MAY[role] else 403), (role, address, answer.status)
            yield html.unescape(answer.body.decode())
            if answer.stream is not None:
                parts = json.loads((await anext(answer.stream)).removeprefix(b"data: "))
                await answer.stream.aclose()
                yield html.unescape("\n".join(parts.values()))


async def every_form(bureau: Bureau, window: Window, role: Role, written: Written) -> AsyncIterator[str]:
    """Sends every form with mistakes, of a page that has gone stale; gives what the answers show."""
    await window.get("/console/account")
    form = {"token": window.token, "seen": "0.0", "note": "a note", "reason": ""}
    for route in (each for each in ROUTES if each.method == "POST" and each.act and each.path not in NOT_SENT):
        confirmations = [written.names[each] for each in ("decision", "refund", "replay", "closing")]
        for confirmation in confirmations if "{confirmation}" in route.path else [""]:
            bureau.desk.gateway.readings.append(RECORD)
            path = route.path.format(confirmation=confirmation.rpartition("/")[2], **IN_FORMS)
            answer = await window.send("POST", path, form)
            assert answer.status in ({200, 303, 400, 403, 404, 409, 422} if route.act in MAY[role] else {403}), path
            yield html.unescape(answer.body.decode())
