"""Where the stories keep things: the nouns of the store, as one process has opened them."""

from dataclasses import dataclass

from payrelay.store.access.client_tokens import ClientTokens
from payrelay.store.access.signing_keys import SigningKeys
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.inbox import Inbox
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.subscriptions import Subscriptions


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The nouns of the store that a story may write to; made once at start.

    Attributes:
        journal: where operations are kept.
        resolution: what settling asks the store.
        inbox: where notifications are kept.
        chargebacks: where payments that were taken back are kept.
        customers: where stored customers are kept.
        checkouts: where hosted payments are kept.
        subscriptions: where it is kept how subscriptions stand.
        client_tokens, signing_keys: where client tokens are kept, and what they are signed with.
    """

    journal: Journal
    resolution: ResolutionStore
    inbox: Inbox
    chargebacks: Chargebacks
    customers: Customers
    checkouts: Checkouts
    subscriptions: Subscriptions
    client_tokens: ClientTokens
    signing_keys: SigningKeys
