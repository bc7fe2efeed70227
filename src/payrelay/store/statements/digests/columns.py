"""What the store reads of each table whose rows have digests: the columns in their order, the key first."""

from typing import Final

from payrelay.store.statements import checkouts, customers, inbox, subscriptions
from payrelay.store.statements.access import client_tokens, credentials, principals
from payrelay.store.statements.chargebacks import CHARGEBACK_COLUMNS
from payrelay.store.statements.events import endpoints, outbox
from payrelay.store.statements.events.feed import EVENT_COLUMNS
from payrelay.store.statements.gateways import readings
from payrelay.store.statements.imports.payments import IMPORTED_COLUMNS
from payrelay.store.statements.operators import operators
from payrelay.store.statements.payments.operations import FAILED_COLUMNS, OPERATION_COLUMNS
from payrelay.store.statements.payments.signed_texts import SIGNED_COLUMNS

READ: Final = {
    "credentials": credentials.CREDENTIAL_COLUMNS,
    "client_tokens": "id, principal, credential_id, revoked_at_ms",
    "customers": f"{customers.COLUMNS}, reference_hash",
    "endpoints": endpoints.ENDPOINT_COLUMNS,
    "checkouts": checkouts.COLUMNS,
    "notifications": inbox.NOTIFICATION_COLUMNS,
    "principal_names": principals.NAME_COLUMNS,
    "principal_groups": principals.MEMBER_COLUMNS,
    "accepted_tokens": inbox.ACCEPTED_COLUMNS,
    "payments_seen": readings.SEEN_COLUMNS,
    "returns_seen": readings.RETURN_COLUMNS,
    "subscriptions": subscriptions.SUBSCRIPTION_COLUMNS,
    "installments": subscriptions.INSTALLMENT_COLUMNS,
    "chargebacks": CHARGEBACK_COLUMNS,
    "failed_refunds": FAILED_COLUMNS,
    "outbox": outbox.OUTBOX_COLUMNS,
    "events": EVENT_COLUMNS,
    "imported_payments": IMPORTED_COLUMNS,
    "signed_texts": SIGNED_COLUMNS,
    "operations": OPERATION_COLUMNS,
    "operators": operators.OPERATOR_COLUMNS,
    "operator_invitations": operators.INVITATION_COLUMNS,
    "operator_passkeys": operators.PASSKEY_COLUMNS,
    "console_sessions": operators.SESSION_COLUMNS,
    "console_confirmations": operators.CONFIRMATION_COLUMNS,
}
"""By the name of the table."""

SHOWN_OF_TOKENS: Final = frozenset(client_tokens.ISSUED_COLUMNS.split(", ")) - set(READ["client_tokens"].split(", "))
"""The columns of client tokens that are only shown."""
