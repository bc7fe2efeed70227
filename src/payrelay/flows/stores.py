"""The stores that flows use, as one process has opened them."""

from dataclasses import dataclass

from payrelay.core.access.person_names import PersonNames
from payrelay.reconciliation.store.stores import ReconciliationStores
from payrelay.store.access.client_tokens import ClientTokens
from payrelay.store.access.credentials import Credentials
from payrelay.store.access.owners import Owners
from payrelay.store.access.principals import Principals
from payrelay.store.access.signing_keys import SigningKeys
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.imports.payments import ImportedPayments
from payrelay.store.inbox import Inbox
from payrelay.store.orders.facts import Orders
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.known_payments import KnownPayments
from payrelay.store.payments.order_searches import OrderSearches
from payrelay.store.payments.paid_again import PaidAgain
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.recovery.identity import IdentityStore
from payrelay.store.retention.clearing import Clearing
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.subscriptions import Subscriptions


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The stores that a flow may write to; made once at start.

    Attributes:
        journal: operations, with their histories, calls and answers.
        resolution: the queries of the resolution.
        known_payments: the payments that are known here.
        orders: all that is stored of an order's money, and of one payment.
        imported_payments: those of them that were made before Payrelay.
        paid_again: the orders that were paid again.
        order_searches: when each order is searched for at the gateway.
        inbox: notifications.
        chargebacks: payments that a bank took back.
        customers: stored customers.
        person_names: the names under which the requests of an identity provider's persons are stored.
        checkouts: checkouts.
        signed_texts: the texts that gateways sign once they get a form or a call.
        subscriptions: what is known of subscriptions.
        credentials: keys.
        pauses: the accounts that an operator has paused.
        client_tokens, signing_keys: client tokens, and the keys that sign them.
        owners: who owns a payment, an authorization, a plan or an order.
        principals: the names and groups of principals.
        identities: the identity of the database.
        clearing: clears old data.
        reconciliation: our books, statements, and differences between them.
    """

    journal: Journal
    resolution: ResolutionStore
    known_payments: KnownPayments
    orders: Orders
    imported_payments: ImportedPayments
    paid_again: PaidAgain
    order_searches: OrderSearches
    inbox: Inbox
    chargebacks: Chargebacks
    customers: Customers
    person_names: PersonNames
    checkouts: Checkouts
    signed_texts: SignedTexts
    subscriptions: Subscriptions
    credentials: Credentials
    pauses: Pauses
    client_tokens: ClientTokens
    signing_keys: SigningKeys
    owners: Owners
    principals: Principals
    identities: IdentityStore
    clearing: Clearing
    reconciliation: ReconciliationStores
