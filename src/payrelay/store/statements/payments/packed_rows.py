"""Whole rows with their digests, each as one value: for statements that draw a conclusion from several tables."""

from typing import Final

from payrelay.store.engine.queries import packed
from payrelay.store.statements.chargebacks import CHARGEBACK_COLUMNS
from payrelay.store.statements.checkouts import COLUMNS as CHECKOUT_COLUMNS
from payrelay.store.statements.gateways.readings import RETURN_COLUMNS, SEEN_COLUMNS
from payrelay.store.statements.imports.payments import IMPORTED_COLUMNS
from payrelay.store.statements.inbox import ACCEPTED_COLUMNS, NOTIFICATION_COLUMNS
from payrelay.store.statements.payments.operations import CHAINED_DIGEST, FAILED_COLUMNS, OPERATION_COLUMNS
from payrelay.store.statements.subscriptions import INSTALLMENT_COLUMNS, SUBSCRIPTION_COLUMNS

OPERATION: Final = packed("operations", OPERATION_COLUMNS, CHAINED_DIGEST)
CHECKOUT: Final = packed("checkouts", CHECKOUT_COLUMNS)
SUBSCRIPTION: Final = packed("subscriptions", SUBSCRIPTION_COLUMNS)
INSTALLMENT: Final = packed("installments", INSTALLMENT_COLUMNS)
ACCEPTED_TOKEN: Final = packed("accepted_tokens", ACCEPTED_COLUMNS)
IMPORTED_PAYMENT: Final = packed("imported_payments", IMPORTED_COLUMNS)
PAYMENT_SEEN: Final = packed("payments_seen", SEEN_COLUMNS)
RETURN_SEEN: Final = packed("returns_seen", RETURN_COLUMNS)
FAILED_REFUND: Final = packed("failed_refunds", FAILED_COLUMNS)
NOTIFICATION: Final = packed("notifications", NOTIFICATION_COLUMNS)
CHARGEBACK: Final = packed("chargebacks", CHARGEBACK_COLUMNS)
