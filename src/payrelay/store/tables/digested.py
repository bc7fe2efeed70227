"""Every table whose rows have digests, and every other with the reason why its rows have none."""

from collections.abc import Mapping
from typing import Final

from payrelay.store.access.client_tokens import CLIENT_TOKENS
from payrelay.store.access.credentials import CREDENTIALS
from payrelay.store.access.principals import PRINCIPAL_GROUPS, PRINCIPAL_NAMES
from payrelay.store.customers import CUSTOMERS
from payrelay.store.events.feed import EVENTS
from payrelay.store.operators.confirmations import CONSOLE_CONFIRMATIONS
from payrelay.store.operators.passkeys import OPERATOR_PASSKEYS
from payrelay.store.statements.chargebacks import CHARGEBACKS
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.events.endpoints import ENDPOINTS
from payrelay.store.statements.events.outbox import OUTBOX
from payrelay.store.statements.gateways.readings import PAYMENTS_SEEN, RETURNS_SEEN
from payrelay.store.statements.imports.payments import IMPORTED_PAYMENTS
from payrelay.store.statements.inbox import ACCEPTED_TOKENS, NOTIFICATIONS
from payrelay.store.statements.operators.operators import CONSOLE_SESSIONS, OPERATOR_INVITATIONS, OPERATORS
from payrelay.store.statements.payments.operations import FAILED_REFUNDS, OPERATIONS
from payrelay.store.statements.payments.signed_texts import SIGNED_TEXTS
from payrelay.store.statements.subscriptions import INSTALLMENTS, SUBSCRIPTIONS

__all__ = ["DIGESTED", "OPERATIONS", "UNDIGESTED"]

DIGESTED: Final = (
    *(CREDENTIALS, CLIENT_TOKENS, CUSTOMERS, ENDPOINTS, CHECKOUTS, NOTIFICATIONS, PRINCIPAL_NAMES, PRINCIPAL_GROUPS),
    *(ACCEPTED_TOKENS, PAYMENTS_SEEN, SUBSCRIPTIONS, INSTALLMENTS, OUTBOX, EVENTS, CHARGEBACKS),
    *(IMPORTED_PAYMENTS, RETURNS_SEEN, FAILED_REFUNDS, SIGNED_TEXTS, OPERATIONS),
    *(OPERATORS, OPERATOR_INVITATIONS, OPERATOR_PASSKEYS, CONSOLE_SESSIONS, CONSOLE_CONFIRMATIONS),
)
"""Every table whose rows have digests."""

UNDIGESTED: Final[Mapping[str, str]] = {
    "history": "the audit chain covers it",
    "anchors": "each covers the one before; the newest is compared with what was noted outside",
    "anchor_checkpoints": "each is signed by the key of the chain, and the audit compares it",
    "clearing": "it says how far the clearing has come; what is cleared is judged by its own row",
    "clearing_skipped": "it says what the clearing tries again; what is cleared is judged by its own row",
    "meta": "every value is sealed under its name",
    "schema_version": "it names migrations; a wrong one ends the start",
    "access_tokens": "every token is sealed for its account",
    "readings": "every reading is sealed for its question",
    "paused_accounts": "a pause that is removed leaves nothing to be checked; the log tells of each",
    "data_keys": "every key is sealed for its owner",
    "key_residues": "it says which files are still to be cleared of destroyed keys",
    "order_searches": "its readings have digests of their own, see store.payments.order_searches",
    "places": "it is the budget of calls, which the gateway keeps too",
    "bumps": "it counts what makes readings outdated",
    "feed": "it is the last position that an event was given",
    "deliveries": "it says what was tried, and what is still to be sent; only a right event of the endpoint's owner is",
    "operator_acts": "each line is chained to the one before, see store.console.acts",
    "operator_act_subjects": "it finds lines about a thing; the lines themselves are chained",
    "sign_in_tries": "it counts tries; who writes there may guess more often, and still has to guess",
    "console_challenges": "what a browser must answer is made from its own cookie, see core.console.sign_in.provider",
    "statement_files": "it says which files were read, and by whom; what was said of them is in operator_acts",
    "statement_lines": "it shows what others say, and moves no money; whoever keeps the files can read them anew",
    "statement_days": "what a person said of a day is in operator_acts too",
    "statement_searches": "it says when the gateway was asked, and the gateway can be asked again",
    "payments_learnt": "it says on which day of the books something is told; what was paid is read from its own row",
    "differences": "a run finds them again; who closed one is in operator_acts",
    "reconciled_days": "the digest of a closed day's report is in operator_acts",
    "heartbeats": "each shows its own process that the database takes writes",
    "alerts": "it says which operators are still to be told",
    "notification_alerts": "it says which operators are still to be told",
    "checkout_alerts": "it says which operators are still to be told",
    "endpoint_alerts": "it says which operators are still to be told",
    "row_alerts": "it says which operators are still to be told",
    "anchor_alerts": "it says which operators are still to be told",
}
"""Every other table, and why its rows have no digest."""
