"""Whole rows with their digests, each as one value: for statements that draw a conclusion from several tables."""

from typing import Final

from payrelay.store.statements.chargebacks import CHARGEBACKS
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.gateways.readings import PAYMENTS_SEEN, RETURNS_SEEN
from payrelay.store.statements.imports.payments import IMPORTED_PAYMENTS
from payrelay.store.statements.inbox import ACCEPTED_TOKENS, NOTIFICATIONS
from payrelay.store.statements.payments.operations import CHAINED_DIGEST, FAILED_REFUNDS, OPERATIONS
from payrelay.store.statements.subscriptions import INSTALLMENTS, SUBSCRIPTIONS

OPERATION: Final = OPERATIONS.packed(CHAINED_DIGEST)
CHECKOUT: Final = CHECKOUTS.packed()
SUBSCRIPTION: Final = SUBSCRIPTIONS.packed()
INSTALLMENT: Final = INSTALLMENTS.packed()
ACCEPTED_TOKEN: Final = ACCEPTED_TOKENS.packed()
IMPORTED_PAYMENT: Final = IMPORTED_PAYMENTS.packed()
PAYMENT_SEEN: Final = PAYMENTS_SEEN.packed()
RETURN_SEEN: Final = RETURNS_SEEN.packed()
FAILED_REFUND: Final = FAILED_REFUNDS.packed()
NOTIFICATION: Final = NOTIFICATIONS.packed()
CHARGEBACK: Final = CHARGEBACKS.packed()
