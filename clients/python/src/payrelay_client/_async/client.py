"""The client: an address, a credential, a store for keys, and the calls grouped by noun."""

from types import TracebackType
from typing import Self

from payrelay_client._async.checkouts import AsyncCheckouts
from payrelay_client._async.client_tokens import AsyncClientTokens
from payrelay_client._async.customers import AsyncCustomers
from payrelay_client._async.effects import Effects
from payrelay_client._async.events import AsyncEndpoints, AsyncEvents
from payrelay_client._async.following import Follower
from payrelay_client._async.operations import AsyncOperations, AsyncRecoveryCalls
from payrelay_client._async.orders import AsyncOrders
from payrelay_client._async.payments import AsyncPayments
from payrelay_client._async.runtime import Credential, HttpClient
from payrelay_client._async.sending import OnWait, Sender
from payrelay_client._async.subscriptions import AsyncSubscriptions, AsyncSubscriptionStates
from payrelay_client.keys import Store, account_of
from payrelay_client.limits import Limits


class AsyncPayrelay:
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
        self.payments = AsyncPayments(sender, effects)
        self.orders = AsyncOrders(sender)
        self.subscriptions = AsyncSubscriptions(sender, effects)
        self.subscription_states = AsyncSubscriptionStates(sender)
        self.checkouts = AsyncCheckouts(sender, effects)
        self.customers = AsyncCustomers(sender)
        self.operations = AsyncOperations(sender, follower)
        self.recovery = AsyncRecoveryCalls(sender)
        self.client_tokens = AsyncClientTokens(sender)
        self.events = AsyncEvents(sender, follower)
        self.endpoints = AsyncEndpoints(sender)

    async def aclose(self) -> None:
        """Closes the connections, where they are this client's own."""
        if self._own_http is not None:
            await self._own_http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
