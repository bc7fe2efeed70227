"""The stores that flows use, as one process has opened them."""

from dataclasses import dataclass

from payrelay.clock import Clock
from payrelay.core.access.person_names import PersonNames
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
from payrelay.store.opened_store import OpenedStore
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.orders.facts import Orders
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.known_payments import KnownPayments
from payrelay.store.payments.order_searches import OrderSearches
from payrelay.store.payments.paid_again import PaidAgain
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.retention.clearing import Clearing
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.subscriptions import Subscriptions


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessStores:
    """Who may call, and whose something is.

    Attributes:
        credentials: keys.
        client_tokens, signing_keys: client tokens, and the keys that sign them.
        owners: who owns a payment, an authorization, a plan or an order.
        principals: the names and groups of principals.
        person_names: the names under which the requests of an identity provider's persons are stored.
    """

    credentials: Credentials
    client_tokens: ClientTokens
    signing_keys: SigningKeys
    owners: Owners
    principals: Principals
    person_names: PersonNames


def access_stores(store: OpenedStore, clock: Clock) -> AccessStores:
    """Makes the stores on a database."""
    database, rows = store.database, store.rows
    return AccessStores(
        credentials=Credentials(database, rows),
        client_tokens=ClientTokens(database, rows),
        signing_keys=SigningKeys(database, store.seal, clock),
        owners=Owners(database, rows),
        principals=Principals(database, rows),
        person_names=PersonNames(store.chain.secret),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class MoneyStores:
    """What is known of payments and orders beside the operations.

    Attributes:
        known_payments: the payments that are known here.
        orders: all that is stored of an order's money, and of one payment.
        imported_payments: those of them that were made before Payrelay.
        paid_again: the orders that were paid again.
        order_searches: when each order is searched for at the gateway.
        chargebacks: payments that a bank took back.
    """

    known_payments: KnownPayments
    orders: Orders
    imported_payments: ImportedPayments
    paid_again: PaidAgain
    order_searches: OrderSearches
    chargebacks: Chargebacks


def money_stores(store: OpenedStore) -> MoneyStores:
    """Makes the stores on a database."""
    database, rows = store.database, store.rows
    return MoneyStores(
        known_payments=KnownPayments(database, rows),
        orders=Orders(rows),
        imported_payments=ImportedPayments(database, rows),
        paid_again=PaidAgain(database, rows),
        order_searches=OrderSearches(database, store.chain.secret),
        chargebacks=Chargebacks(database, rows),
    )


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The stores that a flow may write to; made once at start.

    Attributes:
        journal: operations, with their histories, calls and answers.
        resolution: the queries of the resolution.
        money: what is known of payments and orders.
        inbox: notifications.
        customers: stored customers.
        checkouts: checkouts.
        signed_texts: the texts that gateways sign once they get a form or a call.
        subscriptions: what is known of subscriptions.
        access: who may call, and whose something is.
        pauses: the accounts that an operator has paused.
        clearing: clears old data.
        acts: the history of what operators did.
    """

    journal: Journal
    resolution: ResolutionStore
    money: MoneyStores
    inbox: Inbox
    customers: Customers
    checkouts: Checkouts
    signed_texts: SignedTexts
    subscriptions: Subscriptions
    access: AccessStores
    pauses: Pauses
    clearing: Clearing
    acts: OperatorActs
