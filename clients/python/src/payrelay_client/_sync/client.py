"""The client: an address, a credential, a store for keys, and the calls grouped by noun."""

from types import TracebackType
from typing import Self

from payrelay_client._sync.checkouts import Checkouts
from payrelay_client._sync.client_tokens import ClientTokens
from payrelay_client._sync.customers import Customers
from payrelay_client._sync.effects import Effects
from payrelay_client._sync.events import Endpoints, Events
from payrelay_client._sync.following import Follower
from payrelay_client._sync.operations import Operations, RecoveryCalls
from payrelay_client._sync.orders import Orders
from payrelay_client._sync.payments import Payments
from payrelay_client._sync.runtime import Credential, HttpClient
from payrelay_client._sync.sending import OnWait, Sender
from payrelay_client._sync.subscriptions import Subscriptions, SubscriptionStates
from payrelay_client.keys import Store, account_of
from payrelay_client.limits import Limits


class Payrelay:
    """Calls one account of a Payrelay.

    Args:
        address: of the account's API, such as ``https://pay.example.com/gateway/api``.
        credential: a key, a client token, or a function that gives one. After a 401 the function is called again, and
            the same request is sent once more.
        store: where keys are stored before a payment is sent. Without one no key is sent.
        limits: how often and how long a call tries.
        on_wait: called before each pause. What it raises ends the call; raise Stopped for that.
        http: an HTTP client of your own, with your proxies or certificates; it isn't closed with this client.
    """

    def __init__(
        self,
        address: str,
        credential: Credential,
        *,
        store: Store | None = None,
        limits: Limits | None = None,
        on_wait: OnWait | None = None,
        http: HttpClient | None = None,
    ) -> None:
        account = account_of(address)
        self._own_http = HttpClient() if http is None else None
        sender = Sender(self._own_http or http or HttpClient(), address, credential, limits or Limits(), on_wait)
        follower = Follower(sender)
        effects = Effects(sender, follower, store, account)
        self.payments = Payments(sender, effects)
        self.orders = Orders(sender)
        self.subscriptions = Subscriptions(sender, effects)
        self.subscription_states = SubscriptionStates(sender)
        self.checkouts = Checkouts(sender, effects)
        self.customers = Customers(sender)
        self.operations = Operations(sender, follower)
        self.recovery = RecoveryCalls(sender)
        self.client_tokens = ClientTokens(sender)
        self.events = Events(sender, follower)
        self.endpoints = Endpoints(sender)

    def close(self) -> None:
        """Closes the connections, where they are this client's own."""
        if self._own_http is not None:
            self._own_http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
