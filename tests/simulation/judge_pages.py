"""The verdict on the gateway's pages: what the ledger says, against checkouts, customers and notifications."""

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlencode

import msgspec
from tests.simulation.buyers import Paid
from tests.simulation.clients import Told
from tests.simulation.fate import Fate
from tests.simulation.losses import Loss
from tests.simulation.network import DAY_S, Gateway
from tests.simulation.postman import Posted
from tests.simulation.process import START_MS

from payrelay.core.checkouts.checkout import INQUIRED_FOR_MS
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.money import text_of

ORDER: Final = ("open", "expired", "cancelled", "failed", "notified", "completed")
WAITS_FOR_S: Final = 3 * DAY_S
LAST_TRIES_S: Final = 7 * 3_600.0
"""A notification that waits is tried again every six hours at the latest; so much of calm is enough for one try."""
NOTHING_CENTS: Final = 1_000
"""What is signed for an approval that charges nothing."""
_SUCCESS: Final = "2"
LAST_LOOK_S: Final = 60.0
"""What the last look at the gateway takes at most before a checkout ends."""
_CHECKOUTS: Final = (
    "SELECT id, kind, state, order_id, amount_minor, currency, payment_id, subscription_id, customer_id, "
    "created_at_ms, updated_at_ms, expires_at_ms FROM checkouts"
)
_STEPS: Final = "SELECT subject, type FROM seen_changes WHERE subject LIKE 'checkout:%' ORDER BY number"
_NOTIFICATIONS: Final = "SELECT digest, verdict, state, why FROM notifications"
_CAPTURED: Final = (
    "SELECT order_id, amount_minor FROM operations JOIN accepted_tokens USING (merchant, order_id) "
    "WHERE operations.kind = 'capture' AND state = 'succeeded' AND accepted_tokens.kind = 'authorization' "
    "AND subject = 'authorization/' || token_hash"
)
_VOIDED: Final = (
    "SELECT order_id FROM operations "
    "WHERE kind = 'release' AND state = 'succeeded' AND amount_minor IS NULL AND order_id IS NOT NULL"
)
_VOIDED_NOW: Final = (
    "SELECT order_id FROM operations JOIN accepted_tokens USING (merchant, order_id) "
    "WHERE operations.kind = 'release' AND state = 'succeeded' AND amount_minor IS NULL "
    "AND accepted_tokens.kind = 'authorization' AND subject = 'authorization/' || token_hash"
)
"""The orders whose accepted hold was voided as a whole, and no later one accepted in its place."""
_CALLS: Final = (
    "SELECT id, order_id, amount_minor, currency, created_at_ms FROM operations "
    "WHERE kind IN ('charge', 'authorization') AND state NOT IN ('declined', 'refused', 'not_sent')"
)
_CUSTOMERS: Final = "SELECT id, order_id FROM customers WHERE order_id IS NOT NULL"
_OWNED: Final = (
    "SELECT payment_id FROM operations WHERE payment_id IS NOT NULL AND state = 'succeeded' "
    "AND kind NOT IN ('refund', 'release')"
)
_CHARGED_AFTER: Final = "SELECT id FROM operations WHERE customer_id = ? AND created_at_ms > ? AND created_at_ms < ?"
_OPERATORS_CALLED: Final = """
    SELECT checkout_id, CAST(-version AS TEXT) FROM checkout_alerts WHERE version < 0
    UNION
    SELECT checkouts.id, notifications.payment_id FROM notifications
    JOIN checkouts ON checkouts.merchant = notifications.merchant AND checkouts.order_id = notifications.order_id
    WHERE notifications.state = 'needs_attention' AND notifications.why = 'may_be_lost'"""
"""The checkouts and payments that only an operator can bring together, since commits were lost, or a plan not read."""
_ORDERS_CHARGED: Final = "SELECT DISTINCT order_id FROM operations WHERE order_id IS NOT NULL"


class Checkout(NamedTuple):
    """A checkout as our books have it."""

    id: str
    kind: str
    state: str
    order_id: str
    amount_minor: int | None
    currency: str
    payment_id: str | None
    subscription_id: str | None
    customer_id: str | None
    created_at_ms: int
    updated_at_ms: int
    expires_at_ms: int


class Noted(NamedTuple):
    """A notification as our books have it."""

    digest: str
    kind: str
    state: str
    reason: str


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    told: list[Told]
    auditor: sqlite3.Connection
    loss: Loss | None

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...


def judge_pages(run: Judged, posted: list[Posted], paid: list[Paid]) -> None:
    """Looks at all of it, and blames."""
    checkouts = [Checkout(*row) for row in run.auditor.execute(_CHECKOUTS)]
    inbox = inbox_of(run.auditor)
    for faults in (
        _faults_of_steps(run, checkouts),
        _faults_of_success(checkouts, paid),
        _faults_of_signatures(run, checkouts, taken_in(posted, inbox)),
        _faults_of_authorizations(run, checkouts, paid),
        _faults_of_owning(run, checkouts),
        _faults_of_inbox(inbox, posted, run.loss),
        _faults_of_silence(run, checkouts, taken_in(posted, inbox), paid),
        _faults_of_ends(run, checkouts, paid),
        _faults_of_customers(run, checkouts, paid),
        _faults_of_repeats(run),
    ):
        for fault in faults:
            run.blame(fault)
    for checkout in checkouts:
        run.count(f"checkout {checkout.kind} {checkout.state}")
    for noted in inbox.values():
        run.count(f"notification {noted.state}: {noted.reason}")
    for each in paid:
        run.count(f"paid on a page: {each.kind}")


def _faults_of_steps(run: Judged, checkouts: list[Checkout]) -> Iterator[str]:
    """The states never go backwards, but where a hold was voided: that frees its order."""
    voided = {row[0] for row in run.auditor.execute(_VOIDED)}
    let_go = {f"checkout:{each.id}" for each in checkouts if each.order_id in voided and each.kind == "authorization"}
    before: dict[str, str] = defaultdict(lambda: "open")
    for subject, type_ in run.auditor.execute(_STEPS):
        after = type_.partition(".")[2]
        is_let_go = (before[subject], after) == ("notified", "cancelled") and subject in let_go
        if ORDER.index(after) <= ORDER.index(before[subject]) and not is_let_go:
            yield f"{subject} went from {before[subject]} to {after}"
        before[subject] = after


def _faults_of_success(checkouts: list[Checkout], paid: list[Paid]) -> Iterator[str]:
    """What is completed was paid, approved or held on the gateway's page, for what was asked."""
    for checkout in checkouts:
        if checkout.state == "open":
            yield f"{checkout} is still open at the end"
        if checkout.state not in {"notified", "completed"}:
            continue
        # What else was taken for the same order shows itself in no other way than the payment that was asked for.
        is_of = _is_like if checkout.kind == "payment" else _fits
        fitting = [each for each in paid if is_of(checkout, each)]
        # No record shows a token: what has the same signed text is reported alike (``_faults_of_signatures``).
        is_by_token = checkout.state == "notified" or checkout.kind == "preapproval"
        if not fitting and not (is_by_token and _has_text_of(checkout, paid)):
            yield f"{checkout} is {checkout.state}, and the ledger has nothing like it"
        if checkout.kind == "preapproval" and checkout.customer_id is None:
            yield f"{checkout} was completed without a customer"
        if checkout.kind == "recurring" and checkout.subscription_id not in {
            str(each.entry.subscription_id or "") for each in fitting
        }:
            yield f"{checkout} is of another subscription than was begun"
        made = {str(each.entry.payment_id) for each in fitting}
        if checkout.kind == "payment" and checkout.payment_id not in made:
            yield f"{checkout} is of another payment than was made"


def _faults_of_signatures(run: Judged, checkouts: list[Checkout], arrived: list[tuple[Posted, Noted]]) -> Iterator[str]:
    """A token is believed where nothing else has its signed text: no form for something else, and no call.

    What was given out when the signature was here already can't have brought it.
    """
    calls = run.auditor.execute(_CALLS).fetchall()
    for checkout in checkouts:
        if checkout.kind != "preapproval" or checkout.customer_id is None:
            continue
        text = _text(checkout.order_id, checkout.amount_minor, checkout.currency)
        signed_at_ms = min([checkout.updated_at_ms, *_arrivals_ms_of(text, arrived)])
        others = [
            each.id
            for each in checkouts
            if _text(each.order_id, each.amount_minor, each.currency) == text
            and each.created_at_ms < signed_at_ms
            and (each.kind, each.order_id) != (checkout.kind, checkout.order_id)
        ]
        others += [id_ for id_, *call, at_ms in calls if _text(*call) == text and at_ms < signed_at_ms]
        if others:
            yield f"{checkout} was approved, and its signed text is that of {others} too"


def _arrivals_ms_of(text: str, arrived: list[tuple[Posted, Noted]]) -> Iterator[int]:
    """Gives when the gateway's own word with this signed text was here."""
    for posted, _ in arrived:
        fields = posted.fields
        if fields["status_code"] == _SUCCESS:
            signed = fields["order_id"] + fields["payhere_amount"] + fields["payhere_currency"]
            if signed == text:
                yield START_MS + int(posted.heard_at_s * 1000)


def _has_text_of(checkout: Checkout, paid: list[Paid]) -> bool:
    text = _text(checkout.order_id, checkout.amount_minor, checkout.currency)
    return any(_text(each.entry.order_id, each.entry.amount_cents, each.entry.currency) == text for each in paid)


def _text(order_id: str, amount_minor: int | None, currency: str) -> str:
    return order_id + text_of(NOTHING_CENTS if amount_minor is None else amount_minor) + currency


def _faults_of_authorizations(run: Judged, checkouts: list[Checkout], paid: list[Paid]) -> Iterator[str]:
    """A reported authorization is completed where it was captured, and only there; a void frees its order."""
    voided = {row[0] for row in run.auditor.execute(_VOIDED_NOW)}
    captured = {each.authorization_token for each in run.gateway.world.ledger.entries() if each.kind == "capture"}
    proved = {(order_id, amount_minor) for order_id, amount_minor in run.auditor.execute(_CAPTURED)}
    for checkout in checkouts:
        if checkout.kind != "authorization":
            if checkout.state == "notified":
                yield f"{checkout} is notified, and asked for no authorization"
            continue
        tokens = {each.entry.authorization_token for each in paid if _fits(checkout, each)}
        if checkout.state == "completed" and not tokens & captured:
            yield f"{checkout} was completed, and nobody captured its authorization"
        if checkout.state == "notified" and (checkout.order_id, checkout.amount_minor) in proved:
            yield f"{checkout} is not completed, although the whole of it was captured"
        if checkout.state == "notified" and checkout.order_id in voided:
            yield f"{checkout} keeps its order, although its hold was voided"


def _fits(checkout: Checkout, paid: Paid) -> bool:
    return checkout.kind == paid.kind and not paid.is_edited and _is_like(checkout, paid)


def _is_like(checkout: Checkout, paid: Paid) -> bool:
    entry = paid.entry
    is_equal = checkout.amount_minor in {None, entry.amount_cents} and checkout.currency == entry.currency
    return checkout.order_id == entry.order_id and is_equal


def _faults_of_owning(run: Judged, checkouts: list[Checkout]) -> Iterator[str]:
    """One payment is of one checkout or of one operation, and never of two."""
    owned = [row[0] for row in run.auditor.execute(_OWNED)]
    captured = {str(each.payment_id) for each in run.gateway.world.ledger.entries() if each.kind == "capture"}
    owned += [each.payment_id for each in checkouts if each.payment_id is not None]
    for payment_id, number in Counter(owned).items():
        if number > 1 and payment_id not in captured:
            yield f"payment {payment_id} is of {number} checkouts or operations"


def inbox_of(auditor: sqlite3.Connection) -> dict[str, Noted]:
    """Reads the notifications that our books have, by their digests."""
    return {row[0]: Noted(*row) for row in auditor.execute(_NOTIFICATIONS)}


def taken_in(posted: list[Posted], inbox: dict[str, Noted]) -> list[tuple[Posted, Noted]]:
    """Gives the gateway's own notifications that were taken in, each as it was taken first."""
    first: dict[str, Posted] = {}
    for each in posted:
        if each.origin == "gateway" and each.http_status == 200:
            first.setdefault(_digest(each), each)
    return [(each, inbox[digest]) for digest, each in first.items() if digest in inbox]


def _digest(posted: Posted) -> str:
    return hashlib.sha256(posted.body).hexdigest()


def _faults_of_inbox(inbox: dict[str, Noted], posted: list[Posted], loss: Loss | None) -> Iterator[str]:
    """What was answered 200 is kept once and worked to an end; what a forger sent is refused."""
    for each in posted:
        noted, name = inbox.get(_digest(each)), f"a notification of {each.origin} for {each.fields['order_id']}"
        if each.origin == "forger":
            if each.http_status in {200, 202} or (noted is not None and noted.state != "refused"):
                yield f"{name} was answered {each.http_status} and is {noted}"
        elif each.http_status == 200 and noted is None and not (loss is not None and loss.is_told_of(each.heard_at_s)):
            yield f"{name} was answered 200 and is not there"
        elif each.http_status not in {None, 200, 503}:
            yield f"{name} was answered {each.http_status}"
    for noted in inbox.values():
        if noted.state in {"received", "waiting"}:
            yield f"{noted} comes to no end"
        if noted.reason in {"our_fault", "store_down", "body_forgotten", "account_gone"}:
            yield f"{noted} is our own fault"


def _faults_of_silence(
    run: Judged, checkouts: list[Checkout], arrived: list[tuple[Posted, Noted]], paid: list[Paid]
) -> Iterator[str]:
    """What was paid, told by the gateway, taken in and shown in time completes a checkout, or waits for a person.

    But for what a bank took back: from then on the gateway shows it as that, and not as paid.
    """
    charged = {row[0] for row in run.auditor.execute(_ORDERS_CHARGED)}
    voided = {row[0] for row in run.auditor.execute(_VOIDED)}
    taken_back = taken_back_by_banks(run.gateway)
    for each in paid:
        order_id = each.entry.order_id
        of_it = [(posted, noted) for posted, noted in arrived if is_of(posted, each)]
        in_time = [noted for posted, noted in of_it if was_shown(run, each, posted)]
        asked = [checkout for checkout in checkouts if checkout.order_id == order_id]
        if each.entry.payment_id in taken_back or order_id in charged:
            continue
        is_asked = bool(asked) or run.loss is None or order_id not in run.loss.order_ids
        if each.is_edited and is_asked and any(noted.reason == "subscription_noted" for noted in in_time):
            yield f"{each} is on another schedule than was asked, and no operator is called: {in_time}"
        fitting = [checkout for checkout in asked if _fits(checkout, each)]
        if not in_time or all(_is_left_to_a_person(run.loss, checkout, each) for checkout in fitting):
            continue
        if any(noted.state == "needs_attention" for noted in in_time):
            continue
        ends = {"notified", "completed"} if each.kind == "authorization" else {"completed"}
        ends |= {"cancelled"} if each.kind == "authorization" and order_id in voided else set()
        if not any(checkout.state in ends and _fits(checkout, each) for checkout in asked):
            yield f"{each} was told and shown, and there is {asked}; {in_time}"


def is_of(posted: Posted, paid: Paid) -> bool:
    """Tells whether a notification is of what a person did, and says that it was done."""
    fields, entry = posted.fields, paid.entry
    if fields["status_code"] not in {"2", "3"}:
        return False
    if entry.authorization_token is not None:
        return fields.get("authorization_token") == entry.authorization_token
    is_first = fields.get("message_type", "AUTHORIZATION_SUCCESS") == "AUTHORIZATION_SUCCESS"
    return is_first and fields.get("payment_id") == str(entry.payment_id)


def was_shown(run: Judged, paid: Paid, posted: Posted) -> bool:
    """Tells whether the gateway showed it for long enough while the notification of it waited, and all was calm."""
    blind_from_s, blind_until_s = run.fate.blind_s
    until_s = posted.at_s + WAITS_FOR_S
    from_s = max(posted.at_s, paid.visible_at_s, run.fate.chaos_s)
    if blind_from_s < until_s:
        from_s = max(from_s, blind_until_s)
    return from_s + LAST_TRIES_S < until_s


def _faults_of_ends(run: Judged, checkouts: list[Checkout], paid: list[Paid]) -> Iterator[str]:
    """What was paid and could be seen when its checkout's time ended was seen then, whether or not it was told of.

    But for an order that was asked for as something else too: by the payment alone nobody can tell which of them it is.
    Nor of an order with two plans which of them was meant.
    And but for a gateway that showed another payment than was made, when it was asked at the end. Nor is one seen that
    a lost charge may have made: an operator was called to it.

    Where the gateway can't be asked, a checkout waits for a day, as is promised, and then ends. Nothing is seen whose
    order no search has shown until then. To a plan's payment that was shown, while the plan could not be read, an
    operator must have been called. Before the day is over, that excuses nothing.
    """
    charged = {row[0] for row in run.auditor.execute(_ORDERS_CHARGED)}
    owned = {checkout.payment_id for checkout in checkouts}
    called = set(run.auditor.execute(_OPERATORS_CALLED))
    taken_back = taken_back_by_banks(run.gateway)
    plans = Counter(each.entry.order_id for each in paid if each.entry.subscription_id is not None)
    for checkout in checkouts:
        ended_s = (checkout.updated_at_ms - START_MS) / 1000
        is_inquired = checkout.kind == "payment" or (checkout.kind == "recurring" and plans[checkout.order_id] == 1)
        is_blind = run.fate.blind_s[0] <= ended_s <= run.fate.blind_s[1] + LAST_LOOK_S
        is_blind |= any(ended_s - LAST_LOOK_S < at_s <= ended_s for at_s in run.gateway.lied_at_s)
        if checkout.state != "expired" or not is_inquired or is_blind or checkout.order_id in charged:
            continue
        others = [each for each in checkouts if each.order_id == checkout.order_id and each.id != checkout.id]
        if any(other.kind != "payment" for other in others):
            continue
        for each in paid:
            if each.entry.payment_id in taken_back or _is_waited_out(run, checkout, each):
                continue
            is_called = (checkout.id, str(each.entry.payment_id)) in called
            if is_called and (run.loss is not None or _has_waited(checkout)):
                continue
            # Who edits a form may have paid for an order before it was asked for.
            is_its = each.at_s >= (checkout.created_at_ms - START_MS) / 1000
            is_there = is_its and _fits(checkout, each) and each.visible_at_s + LAST_LOOK_S < ended_s
            if is_there and str(each.entry.payment_id) not in owned:
                yield f"{checkout} ended although {each} could be seen"


def _has_waited(checkout: Checkout) -> bool:
    """Tells whether a checkout ended so late that it no longer had to wait for a gateway that can't be asked."""
    return checkout.updated_at_ms >= checkout.expires_at_ms + INQUIRED_FOR_MS


def _is_waited_out(run: Judged, checkout: Checkout, paid: Paid) -> bool:
    """Tells whether a checkout waited for its day, and no search showed its order once the payment could be seen."""
    ended_s = (checkout.updated_at_ms - START_MS) / 1000
    searched = run.gateway.searched_at_s[urlencode({"order_id": checkout.order_id})]
    return _has_waited(checkout) and not any(paid.visible_at_s <= at_s <= ended_s for at_s in searched)


def _is_left_to_a_person(loss: Loss | None, checkout: Checkout, paid: Paid) -> bool:
    """Tells whether a lost charge may as well have made the payment of a checkout that went through a loss."""
    if loss is None or checkout.created_at_ms >= START_MS + loss.lost_s * 1000:
        return False
    return paid.at_s >= loss.copied_s - TOLERANCE_MS / 1000


def taken_back_by_banks(gateway: Gateway) -> dict[int, LedgerEntry]:
    """Gives the chargebacks of the ledger, by payment."""
    entries = gateway.world.ledger.entries()
    return {entry.payment_id: entry for entry in entries if entry.kind == "chargeback" and entry.payment_id}


def _faults_of_customers(run: Judged, checkouts: list[Checkout], paid: list[Paid]) -> Iterator[str]:
    """One approval makes one customer; nobody else is one; and who was removed is charged no more.

    A checkout whose money a bank took back before it was proved is not completed by its customer. Where a removal is
    lost, and the list of revocations with it, nobody can know of it afterwards. It still counts for what began before
    the loss, and where the list was kept it counts for good.
    """
    taken_back = taken_back_by_banks(run.gateway)
    given_up = {each.entry.order_id for each in paid if each.entry.payment_id in taken_back}
    customers = run.auditor.execute(_CUSTOMERS).fetchall()
    # Who edits the form of an own approval approves it under another order.
    approvals = [each.entry for each in paid if each.kind == "preapproval"]
    approved = {entry.order_id for entry in approvals} | {
        _text(each.order_id, each.amount_cents, each.currency) for each in approvals
    }
    texts = {each.customer_id: _text(each.order_id, each.amount_minor, each.currency) for each in checkouts}
    for order_id, number in Counter(row[1] for row in customers).items():
        if number > 1:
            yield f"the approval of {order_id} made {number} customers"
    known = {checkout.customer_id for checkout in checkouts}
    for customer_id, order_id in customers:
        if not approved & {order_id, texts.get(customer_id, order_id)}:
            yield f"{customer_id} is of {order_id}, for which nobody approved anything"
        if customer_id not in known and order_id not in given_up:
            yield f"{customer_id} is of no checkout"
    for told in run.told:
        if told.ask.method != "DELETE" or "customers/" not in told.ask.path or told.heard is None:
            continue
        if told.heard.http_status == 200:
            customer_id, until_s = told.ask.path.partition("/")[2], float("inf")
            if run.loss is not None and run.loss.has_lost_removal(customer_id, told.heard_at_s):
                until_s = run.loss.lost_s
            removed = customer_id, START_MS + int(told.heard_at_s * 1000), START_MS + until_s * 1000
            for row in run.auditor.execute(_CHARGED_AFTER, removed):
                yield f"{row[0]} began after its customer had been removed"


def _faults_of_repeats(run: Judged) -> Iterator[str]:
    """One Idempotency-Key opens one checkout."""
    opened: dict[tuple[str, str, bytes], set[str]] = defaultdict(set)
    for told in run.told:
        ask, heard = told.ask, told.heard
        is_opening = ask.path == "checkouts"
        is_lost = run.loss is not None and run.loss.is_told_of(told.heard_at_s)
        if is_opening and not is_lost and ask.key is not None and heard is not None and heard.http_status == 200:
            checkout_id = msgspec.json.decode(heard.body)["data"]["id"]
            opened[ask.principal, ask.key, ask.body].add(checkout_id)
    for (_, key, _), ids in opened.items():
        if len(ids) > 1:
            yield f"{key} opened {len(ids)} checkouts: {sorted(ids)}"
