"""The Python client against the service's own tables: no route and no member is missing."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import msgspec
import pytest
from tests.clients.python.scripted import FAST, answer, client_of

from payrelay.api.routes.checkouts import CheckoutBody, PayerBody
from payrelay.api.routes.client_tokens import ClientTokenBody
from payrelay.api.routes.customers import CustomerBody
from payrelay.api.routes.table import ROUTES
from payrelay.flows.access import client_token_views
from payrelay.flows.checkouts import show_checkout
from payrelay.flows.customers import show_customer
from payrelay.flows.events import event_views, manage_endpoints
from payrelay.flows.payments import operation_views
from payrelay.flows.subscriptions import show_subscription_states
from payrelay.recovery.flows import acknowledge
from payrelay_client import Buyer, Payrelay, models
from payrelay_client._sync.checkouts import Checkouts
from payrelay_client._sync.client_tokens import ClientTokens
from payrelay_client._sync.customers import Customers
from payrelay_client.wire import ANSWER_BYTES_MAX

pytestmark = pytest.mark.unit

PIECE: Final = b"x" * 65_536
PERSON: Final = Buyer(first_name="S", last_name="P", email="s@p.lk", phone="1", address="1", city="C", country="LK")

CALLS: Final[dict[str, Callable[[Payrelay], Any]]] = {
    "showOrder": lambda client: client.orders.show("1"),
    "retrievePayments": lambda client: client.payments.of_order("1"),
    "charge": lambda client: client.payments.charge(order_id="A", items="I", currency="LKR", amount=1),
    "capture": lambda client: client.payments.capture(authorization_token="1", amount=1, description="d"),
    "refund": lambda client: client.payments.refund(payment_id="1", description="d"),
    "listSubscriptions": lambda client: client.subscriptions.list(),
    "retrieveSubscription": lambda client: client.subscriptions.show("1"),
    "listSubscriptionPayments": lambda client: client.subscriptions.payments("1"),
    "retrySubscription": lambda client: client.subscriptions.retry("1"),
    "cancelSubscription": lambda client: client.subscriptions.cancel("1"),
    "listSubscriptionStates": lambda client: client.subscription_states.list(),
    "showSubscriptionState": lambda client: client.subscription_states.show("1"),
    "openCheckout": lambda client: client.checkouts.open(
        type="payment", order_id="A", items="I", currency="LKR", amount=1, customer=PERSON
    ),
    "showCheckout": lambda client: client.checkouts.show("1"),
    "closeCheckout": lambda client: client.checkouts.close("1"),
    "listCustomers": lambda client: client.customers.list(),
    "importCustomer": lambda client: client.customers.store(customer_token="T"),
    "showCustomer": lambda client: client.customers.show("1"),
    "changeCustomer": lambda client: client.customers.change("1", label=None),
    "removeCustomer": lambda client: client.customers.remove("1"),
    "eraseCustomer": lambda client: client.customers.erase("1"),
    "listOperations": lambda client: client.operations.list(),
    "showOperation": lambda client: client.operations.show("1"),
    "showOperationByKey": lambda client: client.operations.by_key("1"),
    "showRecovery": lambda client: client.recovery.show(),
    "acknowledgeRecovery": lambda client: client.recovery.acknowledge(1),
    "issueClientToken": lambda client: client.client_tokens.issue(order_id="A"),
    "listClientTokens": lambda client: client.client_tokens.list(),
    "revokeClientTokens": lambda client: client.client_tokens.revoke_all(),
    "revokeClientToken": lambda client: client.client_tokens.revoke("1"),
    "listEvents": lambda client: client.events.list(),
    "followEvents": lambda client: client.events.follow("1"),
    "createEndpoint": lambda client: client.endpoints.register(url="https://a"),
    "listEndpoints": lambda client: client.endpoints.list(),
    "showEndpoint": lambda client: client.endpoints.show("1"),
    "changeEndpoint": lambda client: client.endpoints.change("1", state="active"),
    "removeEndpoint": lambda client: client.endpoints.remove("1"),
    "rotateEndpoint": lambda client: client.endpoints.rotate("1"),
    "sendTestEvent": lambda client: client.endpoints.test("1"),
    "replayEvents": lambda client: client.endpoints.replay("1", ids=["evt_1"]),
    "listDeliveries": lambda client: client.endpoints.deliveries("1"),
}
"""One call for each route of the service."""

VIEWS: Final[list[tuple[Any, Any]]] = [
    (operation_views.OperationView, models.Operation),
    (operation_views.OperationDetail, models.OperationDetail),
    (operation_views.HistoryEntry, models.HistoryEntry),
    (operation_views.ChargebackView, models.Chargeback),
    (operation_views.FinishedAnswer, models.FinishedAnswer),
    (show_checkout.CheckoutView, models.Checkout),
    (show_checkout.OpenedCheckout, models.OpenedCheckout),
    (show_customer.CustomerView, models.Customer),
    (show_customer.ErasedCustomerView, models.ErasedCustomer),
    (client_token_views.ClientTokenView, models.ClientToken),
    (client_token_views.IssuedClientToken, models.IssuedClientToken),
    (event_views.EventView, models.Event),
    (event_views.EventPage, models.EventPage),
    (manage_endpoints.EndpointView, models.Endpoint),
    (manage_endpoints.IssuedEndpoint, models.IssuedEndpoint),
    (manage_endpoints.DeliveryView, models.Delivery),
    (manage_endpoints.ReplayResult, models.Replayed),
    (acknowledge.RecoveryView, models.Recovery),
    (show_subscription_states.SubscriptionStateView, models.SubscriptionState),
    (show_subscription_states.InstallmentView, models.Installment),
]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_has_a_call(route: Any) -> None:  # noqa: ANN401 - a route of the service's
    """Whoever misses a call writes it by hand, without the rules."""
    with client_of(*[answer(200, None) for _ in range(9)]) as (client, service):
        made = CALLS[route.name](client)
        if isinstance(made, Iterator):
            next(made, None)

    path = service.paths[0]
    pattern = f"{route.method} " + re.sub(r"\{[^}]*\}", "1", route.path)
    assert path.partition("?")[0] == pattern


@pytest.mark.parametrize(("view", "model"), VIEWS, ids=lambda kind: kind.__name__)
def test_every_member_of_an_answer_has_its_type(view: Any, model: Any) -> None:  # noqa: ANN401 - any class
    """What the service tells can be read without looking into ``raw``."""
    known = {each.name for each in dataclasses.fields(model)}

    assert {each.name for each in msgspec.structs.fields(view)} - known == set()


@pytest.mark.parametrize(
    ("body", "call", "other_names"),
    [
        (CheckoutBody, Checkouts.open, {"itemList": "item_list"}),
        (PayerBody, Buyer, {}),
        (ClientTokenBody, ClientTokens.issue, {}),
        (CustomerBody, Customers.store, {}),
    ],
)
def test_every_member_of_a_body_can_be_given(
    body: type[msgspec.Struct], call: Callable[..., object], other_names: dict[str, str]
) -> None:
    """Nobody has to leave the package for a member."""
    wanted = {other_names.get(each.encode_name, each.encode_name) for each in msgspec.structs.fields(body)}

    assert wanted - set(inspect.signature(call).parameters) == set()


def test_pages_follow_one_another() -> None:
    """A list of any length is one loop."""
    link = '</gateway/api/operations?limit=1&cursor=op_1>; rel="next"'
    pages = [answer(200, [{"id": "op_1"}], link=link), answer(200, [{"id": "op_2"}])]
    with client_of(*pages) as (client, service):
        assert [each.id for each in client.operations.list(order_id="A", limit=1)] == ["op_1", "op_2"]

    assert service.paths[1] == "GET /operations?order_id=A&limit=1&cursor=op_1"


def test_a_list_of_the_gateways_may_be_empty() -> None:
    """The service says 404 and an empty list, which is no error to whoever asks what was paid."""
    with client_of(answer(404, [], code="not_found")) as (client, _):
        assert client.payments.of_order("A") == ()


def test_no_secret_shows_where_a_value_is_printed() -> None:
    """Logs are read by many."""
    with client_of(answer(200, {"id": "ct_1", "token": "prt_secret"})) as (client, _):
        token = client.client_tokens.issue(order_id="A")

    assert token.token == "prt_secret"
    assert "secret" not in repr(token)


def test_a_refusal_of_a_stream_without_an_end_is_not_read_to_it() -> None:
    """What answers may be no service at all, and a program's memory has an end."""
    read: list[int] = []

    def body() -> Iterator[bytes]:
        for number in range(3 * ANSWER_BYTES_MAX // len(PIECE)):
            read.append(number)
            yield PIECE

    limits = dataclasses.replace(FAST, tries=1)
    with client_of(*(httpx.Response(500, content=body()) for _ in range(2)), limits=limits) as (client, _):
        assert list(client.events.follow("operation:op_1")) == []

    assert len(read) <= 2 * (ANSWER_BYTES_MAX // len(PIECE) + 1)
