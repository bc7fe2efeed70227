# ruff: noqa: S608 - what is put into the texts are names of the schema

"""A database in which each text that somebody outside chose, and each secret, has a name of its own in its place.

The name is the column and, of a sealed value, the member. So a page that shows one tells which it shows.
"""

import dataclasses
import re
from typing import Final, NamedTuple

import msgspec
from tests.console.browsing import Window, console_on
from tests.console.counter import confirmation_in, sent
from tests.console.test_books import Bureau
from tests.digests import digests_of
from tests.flows.console.books import PAYMENT, RETENTION, id_at, subscribed
from tests.flows.console.desk import PASSWORD, ROOT
from tests.flows.reconciliation.test_day import DAY, PAID
from tests.relays import SEAL
from tests.samples import ASKED, CHECKOUT, ENDPOINT, NOTIFICATION, OPERATION
from tests.store.test_customers import APPROVAL

from payrelay.core.answers import Answer
from payrelay.core.calls import AllSubscriptions, Charge
from payrelay.core.checkouts.checkout import Details
from payrelay.core.checkouts.hosted_payment import Buyer, PostalAddress
from payrelay.core.customers.customer import approved
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.gateways.pauses import Pause
from payrelay.core.notifications.notification import NotificationKind, NotificationState
from payrelay.core.operators.roles import Act, Role
from payrelay.core.outcomes import Evidence, Reading
from payrelay.core.payments.operation import Event, JournalEntry, advance
from payrelay.core.secret import Secret
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.reconciliation.flows.close import close_day
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.data_keys.keys import key_context
from payrelay.store.engine.database import Database, Row, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import DATA_KEY_FORMAT, FORMAT, DataKey
from payrelay.store.events.deliveries import FailedDelivery
from payrelay.store.gateways.access_tokens import AccessTokens
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.payments.journal import AcceptedOperation
from payrelay.store.tables.seals import SEALED

AT_MS: Final = 1_700_000_000_000
CARD: Final = "************7395"
KIND_OF_CARD: Final = "KINDOFCARD"
CARD_ENDS: Final = "1139"
OP: Final = id_at("op", AT_MS, 1)
CHECKOUT_ID: Final = id_at("chk", AT_MS)
CUSTOMER_ID: Final = id_at("cus", AT_MS)
NOTIFICATION_ID: Final = id_at("ntf", AT_MS)
DOUBTED: Final = id_at("op", AT_MS, 2)
HOST: Final = "hooks.named.example"
INVITED: Final = "new@shop.example"
CLIENT: Final = "203.0.113.77"
OF_DETAILS: Final = (
    *("first_name", "last_name", "email", "phone", "address", "city", "country"),
    *("custom_1", "secret", "return_to"),
)
"""Members of what lies sealed of a checkout."""
COLLEAGUE: Final = "operators.email-named@shop.example"


def named(column: str) -> str:
    """Gives the text that lies in a column, and nowhere else."""
    return f"{column.replace('/', '-')}-named"


ORDER: Final = named("operations.order_id")
TEXTS: Final = {
    "customers.sealed_names/card_no_masked": CARD,
    "customers.sealed_names/method": KIND_OF_CARD,
    "customers.sealed_names/card_expiry": CARD_ENDS,
    "endpoints.sealed_url/host": HOST,
    "operators.email": COLLEAGUE,
    "console_sessions.client": CLIENT,
}
"""Those columns in which no name can lie, with what lies there."""


async def store_all(bureau: Bureau) -> None:
    """Stores one row of each kind."""
    await _operations(bureau)
    await _customer(bureau)
    await _page(bureau)
    await _notification(bureau)
    await _told(bureau)
    await subscribed(bureau.desk, ORDER)
    await _of_gateway(bureau)
    pause = Pause(
        account="gateway",
        since_ms=AT_MS,
        reason=named("paused_accounts.reason"),
        operator=named("paused_accounts.operator"),
    )
    await bureau.desk.relay.pauses.add(pause)


async def _operations(bureau: Bureau) -> None:
    journal = bureau.desk.relay.journal
    call = Charge(
        authorize=True,
        order_id=ORDER,
        items=named("operations.sealed_call/items"),
        currency="LKR",
        amount_minor=100_000,
        customer_token=named("operations.sealed_call/customer_token"),
        custom_1=named("operations.sealed_call/custom_1"),
        notify_url=f"https://shop.example/{named('operations.sealed_call/notify_url')}",
    )
    key = named("operations.idempotency_key")
    names = {
        "order_id": ORDER,
        "principal": named("operations.principal"),
        "request_id": named("operations.request_id"),
        "customer_id": CUSTOMER_ID,
        "created_at_ms": AT_MS,
        "updated_at_ms": AT_MS,
    }
    body = named("operations.sealed_answer/body")
    answer = Answer(http_status=200, body=f'{{"data":{{"authorization_token":"{body}"}}}}'.encode())
    words = Evidence(
        gateway_msg=named("history.evidence/gateway_msg"),
        operator=named("history.evidence/operator"),
        reason=named("history.evidence/reason"),
        insisted=named("history.evidence/insisted"),
    )
    for id_, guard, claim, event in ((OP, "a", key, Event.DECLINED), (DOUBTED, "b", f"{key}-2", Event.DIFFERED)):
        row = msgspec.structs.replace(
            OPERATION,
            id=id_,
            subject=f"order/{guard}",
            guard=f"order/{guard}",
            claim=f"key/{claim}",
            idempotency_key=claim,
            payment_id=None if id_ == OP else PAYMENT,
            **names,
        )
        entry = JournalEntry(version=1, at_ms=AT_MS, event=None, state=row.state, evidence=Evidence())
        accepted = await journal.accept(row, entry, call, conflicts_with=None, now_ms=AT_MS)
        assert isinstance(accepted, AcceptedOperation)
        changed, entry = advance(accepted.operation, event, at_ms=AT_MS + 1, retention=RETENTION, evidence=words)
        await journal.record(changed, entry, answer)


async def _customer(bureau: Bureau) -> None:
    approval = msgspec.structs.replace(
        APPROVAL,
        order_id=ORDER,
        reference=named("customers.sealed_names/reference"),
        label=named("customers.sealed_names/label"),
        method=KIND_OF_CARD,
        card_no_masked=CARD,
        card_expiry=CARD_ENDS,
        card_holder=named("customers.sealed_holder"),
        token=Secret(named("customers.sealed_token")),
    )
    assert await bureau.desk.relay.customers.add(approved(approval, CUSTOMER_ID, at_ms=AT_MS), approval)


async def _page(bureau: Bureau) -> None:
    checkouts = bureau.desk.relay.checkouts
    reference = named("checkouts.sealed_reference")
    checkout = msgspec.structs.replace(
        CHECKOUT,
        id=CHECKOUT_ID,
        order_id=ORDER,
        guard=ORDER,
        key_hash=checkouts.key_hash("a key"),
        reference_hash=checkouts.reference_hash(reference),
        created_at_ms=AT_MS,
        updated_at_ms=AT_MS,
        customer_id=CUSTOMER_ID,
    )
    known = {name: named(f"checkouts.sealed/{name}") for name in OF_DETAILS}
    home = PostalAddress(**{name: known[name] for name in PostalAddress.__struct_fields__})
    person = Buyer(**{name: known[name] for name in Buyer.__struct_fields__ if name != "home"}, home=home)
    asked = msgspec.structs.replace(ASKED, person=person, custom_1=known["custom_1"])
    details = Details(asked=asked, secret=known["secret"], return_to=f"https://shop.example/{known['return_to']}")
    assert await checkouts.add(checkout, details, reference=reference)


async def _notification(bureau: Bureau) -> None:
    inbox = bureau.desk.relay.inbox
    notification = msgspec.structs.replace(
        NOTIFICATION, id=NOTIFICATION_ID, order_id=ORDER, payment_id=PAYMENT, received_at_ms=AT_MS, last_at_ms=AT_MS
    )
    assert await inbox.put(notification, named("notifications.sealed_body").encode())
    token = named("accepted_tokens.sealed_token")
    await inbox.accept_token(notification, NotificationKind.AUTHORIZATION, token, at_ms=AT_MS)
    accepted = msgspec.structs.replace(
        notification,
        state=NotificationState.NEEDS_ATTENTION,
        version=2,
        next_at_ms=None,
        accepted_by=named("notifications.accepted_by"),
        accepted_because=named("notifications.accepted_because"),
        accepted_at_ms=AT_MS,
    )
    await inbox.record(accepted)


async def _told(bureau: Bureau) -> None:
    dispatch = bureau.desk.relay.dispatch
    path = named("endpoints.sealed_url/path")
    endpoint = msgspec.structs.replace(
        ENDPOINT,
        url=f"https://{HOST}/{path}?token={path}",
        label=named("endpoints.label"),
        created_at_ms=AT_MS,
        updated_at_ms=AT_MS,
    )
    assert await dispatch.endpoints.add(endpoint, Secret(named("endpoints.sealed_older")))
    newest = Secret(named("endpoints.sealed_secret"))
    assert await dispatch.endpoints.rotate(endpoint.id, newest, older_ends_at_ms=2**50, now_ms=AT_MS)
    event = OutgoingEvent(
        id=id_at("evt", AT_MS),
        type="operation.declined",
        account="gateway",
        merchant=OPERATION.merchant,
        principal="shop",
        subject=f"operation:{OP}",
        at_ms=AT_MS,
        data={"said": named("events.data")},
    )
    await dispatch.endpoints.put(event)
    while await dispatch.feed.publish(AT_MS):
        pass
    words = named("deliveries.last_failure")
    for lease in await dispatch.deliveries.lease_due(endpoint.id, AT_MS, leased_until_ms=AT_MS + 1, limit=20):
        failure = FailedDelivery(lease=lease, status=500, words=words, next_try_ms=None)
        await dispatch.deliveries.failed(failure, now_ms=AT_MS, deferred_until_ms=0)
    await dispatch.endpoints.stop(endpoint.id, named("endpoints.reason"), AT_MS + 2)


async def _of_gateway(bureau: Bureau) -> None:
    relay, database = bureau.desk.relay, bureau.desk.database
    await AccessTokens(database, SEAL, relay.clock, "merchant/app").put(named("access_tokens.sealed_token"), 599.0)
    record = f'[{{"customer":"{named("readings.sealed")}"}}]'.encode()
    await ReadingStore(database, SEAL, digests_of(database)).keep(
        OPERATION.merchant,
        AllSubscriptions(),
        Reading(code=None, msg="", raw_msg=b'""', raw_data=record),
        (),
        read_at_ms=AT_MS,
        answered_at_ms=AT_MS,
    )


class Written(NamedTuple):
    """What operators wrote: what else is looked for on pages, by column, and what stands in addresses, by word."""

    texts: dict[str, str]
    names: dict[str, str]

    def text_in(self, column: str) -> str:
        """Gives what is looked for on pages."""
        return self.texts.get(column) or TEXTS.get(column) or named(column)


async def write(bureau: Bureau) -> Written:
    """Has operators write whatever they can, by the pages, and shows that commits are lost."""
    desk = bureau.desk
    window = await bureau.window(COLLEAGUE.partition("@")[0], Role.ADMIN)
    case = f"/console/act/operation/{DOUBTED}"
    await sent(window, case, "note", note=named("operator_acts.reason/note"))
    await sent(window, case, "assign", email=COLLEAGUE, reason=named("operator_acts.reason/assign"))
    line = ROOT.did(Act.CONFIRM, f"operation/{DOUBTED}", at_ms=AT_MS, details=named("operator_acts.details"))
    await desk.parts.acts.written(lambda: desk.parts.acts.appended(line))
    decision = await _asked(window, case, "decide", decision="failed")
    await window.post(decision, reason=named("console_confirmations.reason"))
    paid = f"/console/act/payment/gateway~{PAID.partition(',')[0]}"
    described = named("console_confirmations.fields/description")
    refund = await _asked(window, paid, "refund", amount="1.00", description=described)
    replay = await _asked(window, f"/console/act/notification/{NOTIFICATION_ID}", "replay_notification")
    [found] = await bureau.compare(PAID.replace("1000.00", "900.00"))
    closing = await bureau.close_difference(window, found, named("differences.closed_reason"))
    await close_day(bureau.office.relay, bureau.office.scope, DAY, ROOT, named("reconciled_days.closed_reason"))
    new_key = KeyRequest(environment="sandbox", principal="shop", scopes=frozenset(), accounts=frozenset())
    key = await issue_key(desk.relay.access.credentials, desk.clock, new_key)
    names = {"decision": decision, "refund": refund, "replay": replay, "closing": closing}
    names |= {"difference": f"gateway~{found.id}", "key": key.credential.id}
    texts = await _people(bureau, window)
    _lose_commits(bureau)
    return Written(texts, names)


async def _people(bureau: Bureau, window: Window) -> dict[str, str]:
    """Invites somebody, and begins to sign the colleague in elsewhere; gives what must stay secret of all that."""
    operators = bureau.desk.parts.operators
    await window.get("/console/operators")
    invited = {"name": named("operators.name"), "role": "viewer", "reason": named("operator_acts.reason/invite")}
    await window.post("/console/operators", email=INVITED, **invited)
    [token] = re.findall(r"/console/invitations/([\w-]{43})", window.text)
    half = Window(bureau.console, CLIENT)
    await half.get("/console/sign-in")
    form = {"token": half.token, "email": COLLEAGUE, "password": PASSWORD}
    await half.send("POST", "/console/sign-in", form, user_agent=named("console_sessions.browser"))
    operator = await operators.by_email(COLLEAGUE)
    assert operator is not None
    totp = await operators.totp_secret(operator.id)
    assert totp is not None
    return {
        "operators.password_hash": str(operator.password_hash),
        "operators.sealed_totp": totp.reveal(),
        "operator_invitations.token_hash/token": token,
        "console_sessions.token_hash/token": window.cookies["__Host-payrelay_console_session"],
    }


def _lose_commits(bureau: Bureau) -> None:
    current = Incarnation(
        number=2,
        reason=Beginning.RECOVERED,
        began_at_ms=AT_MS,
        lost=LostWindow(since_ms=AT_MS, until_ms=AT_MS),
        operator="ada",
        note=named("meta.value/note"),
    )

    async def read() -> DatabaseIdentity:
        return DatabaseIdentity(id="0" * 32, incarnations=(current,))

    desk = bureau.desk
    lost_commits = LostCommits(read, desk.clock, desk.relay.log)
    desk.cases = dataclasses.replace(
        desk.cases,
        relay=dataclasses.replace(
            desk.relay, database=dataclasses.replace(desk.relay.database, lost_commits=lost_commits)
        ),
    )
    bureau.console = console_on(desk, bureau.world.relay)


async def _asked(window: Window, thing: str, act_name: str, **fields: str) -> str:
    await sent(window, thing, act_name, **fields)
    return f"/console/confirmations/{confirmation_in(window)}"


async def all_that_is_stored(database: Database) -> str:
    """Gives every text and every number of the database, and what is sealed in it opened."""
    tables = await database.read(all_rows(Statement(query("SELECT name FROM sqlite_schema WHERE type = 'table'"), ())))
    texts = [repr(await _rows(database, f"SELECT * FROM {table}")) for table in (str(row[0]) for row in tables)]
    keys = {
        str(owner): DataKey(SEAL.open(blob_of(sealed), key_context(str(owner))))
        for owner, sealed in await _rows(database, "SELECT owner, sealed_key FROM data_keys")
    }
    for column in (each for each in SEALED if each.table != "data_keys"):
        names = ", ".join((*column.keys, column.column))
        for *key, sealed in await _rows(database, f"SELECT {names} FROM {column.table}"):
            if isinstance(sealed, bytes) and sealed.startswith((FORMAT, DATA_KEY_FORMAT)):
                opener = keys[column.owner(*key)] if column.owner is not None else SEAL
                texts.append(repr(opener.open(sealed, column.context(*key))))
    return "\n".join(texts)


async def _rows(database: Database, text: str) -> list[Row]:
    return await database.read(all_rows(Statement(query(text), ())))
