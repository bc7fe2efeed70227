"""Who may do what on which route with whose things: each cell is one request and its answer.

A row is a route and a noun that its requests can name. Its cells stand in groups, one for each credential of
`bearers.py` that sees a difference:

    key: own, foreign, unknown, nowhere, group
    customer's token, order's token, token of both, identity, identity with order: own, other

*foreign* is another principal's thing of the same merchant, *unknown* one that was made at the gateway without
Payrelay, *nowhere* nothing at all, and *group* that of another principal in the caller's group. A key with the scope
`any-principal` sees each foreign thing as one of its group. To a phone everything but its own is *other*: its shop's
other customers' things, another principal's, unknown ones and none. All of these get one answer, so that nobody learns
which ids there are.

A cell is the HTTP status, whose error code is that of `CODES`; or `+` for 200 with the thing in the answer, `-` for 200
without it, and `.` where the case makes no sense.
"""

from dataclasses import dataclass
from typing import Any, Final

from tests.access.belongings import AMOUNT, PERSON, Noun

CODES: Final = {
    "401": "unauthenticated",
    "403": "forbidden",
    "404": "not_found",
    "409": "conflict",
    "422": "invalid_request",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One route and one noun that it can name.

    Attributes:
        route: the route's name.
        noun: what is named.
        path: with the ids in braces; those of the caller's own thing begin with `own_`.
        key: the expected answers to a key, as the module says.
        phones: those to the credentials of phones, in groups between bars.
        body: with the ids in braces; None where there is none.
        shows: the pattern of an answer that has the thing in it, with the ids in braces.
    """

    route: str
    noun: Noun
    path: str
    key: str
    phones: str
    body: dict[str, Any] | None = None
    shows: str | None = None


_CHARGE: Final = {"type": "PAYMENT", "items": "Tea", "currency": "LKR", "amount": AMOUNT}
_CHECKOUT: Final = {"type": "payment", "items": "Tea", "currency": "LKR", "amount": AMOUNT, "customer": PERSON}
_REFUND: Final = {"description": "not wanted"}

_CLOSED: Final = "403 403 | 403 403 | 403 403 | 403 403 | 403 403"
"""The route is closed to phones."""
_OWN_ONLY: Final = "200 404 | 200 404 | 200 404 | 200 404 | 200 404"
_LISTED: Final = "+ - | + - | + - | + - | + -"
_PAYS: Final = "403 403 | 403 403 | 200 403 | 403 403 | 403 403"
_OPENS: Final = "403 403 | 200 403 | 200 403 | 403 403 | 403 403"

ROWS: Final = (
    Row(
        route="retrievePayments", noun=Noun.ORDER, path="payments/{order}", key="200 404 200 404 200", phones=_OWN_ONLY
    ),
    Row(route="showOrder", noun=Noun.ORDER, path="orders/{order}", key="200 404 404 404 200", phones=_OWN_ONLY),
    Row(
        route="charge",
        noun=Noun.NEW_ORDER,
        path="payments/charge",
        body=_CHARGE | {"order_id": "{order}", "customer_token": "{own_customer}"},
        key="200 409 200 200 200",
        phones=_PAYS,
    ),
    Row(
        route="charge",
        noun=Noun.CHECKOUT,
        path="payments/charge",
        body=_CHARGE | {"order_id": "{order}", "customer_token": "{own_customer}"},
        # While its page is open, nobody charges it.
        key="409 409 . 200 409",
        phones=_PAYS.replace("200", "409"),
    ),
    Row(
        route="charge",
        noun=Noun.CUSTOMER,
        path="payments/charge",
        body=_CHARGE | {"order_id": "{own_order}", "customer_token": "{customer}"},
        key="200 422 422 422 422",
        phones=_PAYS,
    ),
    Row(
        route="capture",
        noun=Noun.AUTHORIZATION,
        path="payments/capture",
        body={"authorization_token": "{authorization}", "amount": AMOUNT, "description": "sent"},
        key="200 404 200 422 200",
        phones=_CLOSED,
    ),
    Row(
        route="capture",
        noun=Noun.AUTHORIZED_CHECKOUT,
        path="payments/capture",
        body={"authorization_token": "{checkout}", "amount": AMOUNT, "description": "sent"},
        key="200 422 . 422 200",
        phones=_CLOSED,
    ),
    Row(
        route="refund",
        noun=Noun.ORDER,
        path="payments/refund",
        body=_REFUND | {"payment_id": "{payment}"},
        key="200 404 200 422 200",
        phones=_CLOSED,
    ),
    Row(
        route="refund",
        noun=Noun.AUTHORIZATION,
        path="payments/refund",
        body=_REFUND | {"authorization_token": "{authorization}"},
        key="200 404 200 422 200",
        phones=_CLOSED,
    ),
    Row(
        route="refund",
        noun=Noun.AUTHORIZED_CHECKOUT,
        path="payments/refund",
        body=_REFUND | {"authorization_token": "{checkout}"},
        key="200 422 . 422 200",
        phones=_CLOSED,
    ),
    Row(
        route="listSubscriptions",
        noun=Noun.SUBSCRIPTION,
        path="subscriptions",
        shows="{subscription}",
        key="+ - + - +",
        phones=_CLOSED,
    ),
    Row(
        route="retrieveSubscription",
        noun=Noun.SUBSCRIPTION,
        path="subscriptions/{subscription}",
        key="200 404 200 404 200",
        phones=_OWN_ONLY,
    ),
    Row(
        route="listSubscriptionPayments",
        noun=Noun.SUBSCRIPTION,
        path="subscriptions/{subscription}/payments",
        key="200 404 200 404 200",
        phones=_OWN_ONLY,
    ),
    Row(
        route="retrySubscription",
        noun=Noun.SUBSCRIPTION,
        path="subscriptions/{subscription}/retry",
        key="409 404 409 404 409",
        phones=_CLOSED,
    ),
    Row(
        route="cancelSubscription",
        noun=Noun.SUBSCRIPTION,
        path="subscriptions/{subscription}",
        key="200 404 200 404 200",
        phones=_OWN_ONLY,
    ),
    Row(
        route="listSubscriptionStates",
        noun=Noun.SUBSCRIPTION,
        path="subscription-states",
        shows="{subscription}",
        key="+ - - - +",
        phones=_CLOSED,
    ),
    Row(
        route="showSubscriptionState",
        noun=Noun.SUBSCRIPTION,
        path="subscription-states/{subscription}",
        key="200 404 404 404 200",
        phones=_OWN_ONLY,
    ),
    Row(
        route="openCheckout",
        noun=Noun.NEW_ORDER,
        path="checkouts",
        body=_CHECKOUT | {"order_id": "{order}"},
        key="200 409 200 200 200",
        phones=_OPENS,
    ),
    Row(
        route="openCheckout",
        noun=Noun.CHECKOUT,
        path="checkouts",
        body=_CHECKOUT | {"order_id": "{order}"},
        key="409 409 . 200 409",
        phones="403 403 | 409 403 | 409 403 | 403 403 | 403 403",
    ),
    Row(
        route="showCheckout", noun=Noun.CHECKOUT, path="checkouts/{checkout}", key="200 404 . 404 404", phones=_OWN_ONLY
    ),
    Row(
        route="closeCheckout",
        noun=Noun.CHECKOUT,
        path="checkouts/{checkout}",
        key="200 404 . 404 404",
        phones="403 403 | 200 404 | 200 404 | 403 403 | 403 403",
    ),
    Row(
        route="listCustomers",
        noun=Noun.CUSTOMER,
        path="customers",
        shows="{customer}",
        key="+ - . - -",
        phones="+ - | - - | + - | + - | + -",
    ),
    Row(
        route="listCustomers",
        noun=Noun.CUSTOMER,
        path="customers?reference={reference}",
        shows="{customer}",
        key="+ - . - -",
        phones="+ - | - - | + - | + - | + -",
    ),
    Row(
        route="importCustomer",
        noun=Noun.CUSTOMER,
        path="customers",
        body={"customer_token": "{gateway_token}"},
        key="200 200 200 . 200",
        phones=_CLOSED,
    ),
    Row(
        route="showCustomer",
        noun=Noun.CUSTOMER,
        path="customers/{customer}",
        key="200 404 . 404 404",
        phones="200 404 | 404 404 | 200 404 | 200 404 | 200 404",
    ),
    Row(
        route="changeCustomer",
        noun=Noun.CUSTOMER,
        path="customers/{customer}",
        body={"label": "other"},
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="removeCustomer", noun=Noun.CUSTOMER, path="customers/{customer}", key="200 404 . 404 404", phones=_CLOSED
    ),
    Row(
        route="eraseCustomer",
        noun=Noun.CUSTOMER,
        path="customers/{customer}/erase",
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="showRecovery",
        noun=Noun.ORDER,
        path="recovery",
        shows="{order}",
        key="- . . . .",
        phones=_CLOSED,
    ),
    Row(
        route="acknowledgeRecovery",
        noun=Noun.ORDER,
        path="recovery/acknowledgement",
        body={"incarnation": 2},
        key="409 . . . .",
        phones=_CLOSED,
    ),
    Row(
        route="listOperations",
        noun=Noun.ORDER,
        path="operations?limit=100",
        shows="{operation}",
        key="+ - . - -",
        phones=_LISTED,
    ),
    Row(
        route="listOperations",
        noun=Noun.ORDER,
        path="operations?order_id={order}",
        shows="{operation}",
        key="+ - . - -",
        phones=_LISTED,
    ),
    Row(
        route="listOperations",
        noun=Noun.ORDER,
        path="operations?payment_id={payment}",
        shows="{operation}",
        key="+ - . - -",
        phones=_LISTED,
    ),
    Row(
        route="listOperations",
        noun=Noun.ORDER,
        path="operations?customer_id={customer}",
        shows="{operation}",
        key="+ - . - -",
        phones=_LISTED,
    ),
    Row(
        route="listOperations",
        noun=Noun.CANCELLED_SUBSCRIPTION,
        path="operations?subscription_id={subscription}",
        shows="{operation}",
        key="+ - . - -",
        phones="- - | - - | - - | - - | - -",
    ),
    Row(
        route="showOperation", noun=Noun.ORDER, path="operations/{operation}", key="200 404 . 404 404", phones=_OWN_ONLY
    ),
    Row(
        route="showOperationByKey",
        noun=Noun.ORDER,
        path="operations/by-key/{key}",
        key="200 404 . 404 404",
        phones="404 404 | 404 404 | 404 404 | 404 404 | 404 404",
    ),
    Row(
        route="issueClientToken",
        noun=Noun.CUSTOMER,
        path="client-tokens",
        body={"customer_id": "{customer}"},
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="issueClientToken",
        noun=Noun.ORDER,
        path="client-tokens",
        body={"order_id": "{order}"},
        key="200 200 200 200 200",
        phones=_CLOSED,
    ),
    Row(
        route="listClientTokens",
        noun=Noun.TOKEN,
        path="client-tokens",
        shows="{token}",
        key="+ - . - -",
        phones=_CLOSED,
    ),
    Row(
        route="listClientTokens",
        noun=Noun.TOKEN,
        path="client-tokens?customer_id={customer}",
        shows="{token}",
        key="+ - . - -",
        phones=_CLOSED,
    ),
    Row(
        route="revokeClientTokens",
        noun=Noun.TOKEN,
        path="client-tokens?customer_id={customer}",
        shows='"revoked":[1-9]',
        key="+ - . - -",
        phones=_CLOSED,
    ),
    Row(
        route="revokeClientTokens",
        noun=Noun.TOKEN,
        path="client-tokens?credential_id={credential}",
        shows='"revoked":[1-9]',
        key="+ - . - -",
        phones=_CLOSED,
    ),
    Row(
        route="revokeClientToken",
        noun=Noun.TOKEN,
        path="client-tokens/{token}",
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="listEvents", noun=Noun.EVENT, path="events?limit=1000", shows="{event}", key="+ - . - -", phones=_CLOSED
    ),
    Row(
        route="listEvents",
        noun=Noun.EVENT,
        path="events?subject=operation%3A{operation}",
        shows="{event}",
        key="+ - . - -",
        phones=_CLOSED,
    ),
    Row(
        route="followEvents",
        noun=Noun.EVENT,
        path="events/stream?subject=operation%3A{operation}",
        key="200 404 . 404 404",
        phones=_OWN_ONLY,
    ),
    Row(
        route="followEvents",
        noun=Noun.CHECKOUT,
        path="events/stream?subject=checkout%3A{checkout}",
        key="200 404 . 404 404",
        phones=_OWN_ONLY,
    ),
    Row(
        route="createEndpoint",
        noun=Noun.NOTHING,
        path="endpoints",
        body={"url": "https://{own_reference}.example/"},
        key="200 . . . .",
        phones="403 . | 403 . | 403 . | 403 . | 403 .",
    ),
    Row(
        route="listEndpoints", noun=Noun.ENDPOINT, path="endpoints", shows="{endpoint}", key="+ - . - -", phones=_CLOSED
    ),
    Row(route="showEndpoint", noun=Noun.ENDPOINT, path="endpoints/{endpoint}", key="200 404 . 404 404", phones=_CLOSED),
    Row(
        route="changeEndpoint",
        noun=Noun.ENDPOINT,
        path="endpoints/{endpoint}",
        body={"label": "other"},
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="removeEndpoint", noun=Noun.ENDPOINT, path="endpoints/{endpoint}", key="200 404 . 404 404", phones=_CLOSED
    ),
    Row(
        route="rotateEndpoint",
        noun=Noun.ENDPOINT,
        path="endpoints/{endpoint}/rotate",
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="sendTestEvent",
        noun=Noun.ENDPOINT,
        path="endpoints/{endpoint}/test",
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="replayEvents",
        noun=Noun.ENDPOINT,
        path="endpoints/{endpoint}/replay",
        body={"since": "2026-01-01T00:00:00Z"},
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="replayEvents",
        noun=Noun.EVENT,
        path="endpoints/{own_endpoint}/replay",
        body={"ids": ["{event}"]},
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
    Row(
        route="listDeliveries",
        noun=Noun.ENDPOINT,
        path="endpoints/{endpoint}/deliveries",
        key="200 404 . 404 404",
        phones=_CLOSED,
    ),
)


@dataclass(frozen=True, kw_only=True)
class PublicRow:
    """One way to ask a route that needs no credential, and its answer.

    Attributes:
        route: method and path, as `PUBLIC_ROUTES` has them.
        case: what the caller knows.
        path: below the account, with the ids of the checkout and of another one (`other_`).
        status: the answer's.
    """

    route: str
    case: str
    path: str
    status: int


_PAGE: Final = "GET /checkouts/{id}/{secret}"

PUBLIC_ROWS: Final = (
    *(
        row
        for way in ("", "/return", "/cancel")
        for row in (
            PublicRow(route=_PAGE + way, case="its own secret", path="checkouts/{checkout}/{secret}" + way, status=200),
            PublicRow(
                route=_PAGE + way, case="another's secret", path="checkouts/{checkout}/{other_secret}" + way, status=404
            ),
            PublicRow(route=_PAGE + way, case="no secret", path="checkouts/{checkout}/{no_secret}" + way, status=404),
            PublicRow(
                route=_PAGE + way, case="an unknown checkout", path="checkouts/{no_checkout}/{secret}" + way, status=404
            ),
        )
    ),
    PublicRow(route="GET /hosted/{asset}", case="a file of the pages", path="hosted/page.css", status=200),
    PublicRow(route="GET /hosted/{asset}", case="another file", path="hosted/..%2Fpages.py", status=404),
    PublicRow(route="POST /notifications", case="signed by the gateway", path="genuine", status=200),
    PublicRow(route="POST /notifications", case="signed with another secret", path="forged", status=403),
    PublicRow(route="POST /notifications", case="signed, and then edited", path="edited", status=403),
    PublicRow(route="POST /notifications", case="not signed", path="unsigned", status=400),
    PublicRow(route="POST /notifications", case="another merchant's", path="of another merchant", status=403),
)
"""The routes that need no credential; the paths of notifications name how each is made."""
