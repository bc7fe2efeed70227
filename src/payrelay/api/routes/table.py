"""The one table of routes, from which dispatch, permissions, ``/openapi.json`` and the tables in the docs are made."""

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
    recovery,
    subscriptions,
)

ROUTES: Final[tuple[Route, ...]] = (
    *payments.ROUTES,
    *subscriptions.ROUTES,
    *checkouts.ROUTES,
    *customers.ROUTES,
    *operations.ROUTES,
    *recovery.ROUTES,
    *client_tokens.ROUTES,
    *events.ROUTES,
    *endpoints.ROUTES,
)
"""In the order of the API docs."""
