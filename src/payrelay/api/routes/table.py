"""The one table of routes: dispatch, authorization, ``/openapi.json`` and the tables in the docs are made from it."""

from typing import Final

from payrelay.api.requests.route import Route
from payrelay.api.routes import (
    checkouts,
    client_tokens,
    customers,
    endpoints,
    events,
    operations,
    payments,
    subscriptions,
)

ROUTES: Final[tuple[Route, ...]] = (
    *payments.ROUTES,
    *subscriptions.ROUTES,
    *checkouts.ROUTES,
    *customers.ROUTES,
    *operations.ROUTES,
    *client_tokens.ROUTES,
    *events.ROUTES,
    *endpoints.ROUTES,
)
"""In the order in which they are described."""
