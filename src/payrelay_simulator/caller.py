"""Calling the world without a socket, as a merchant's server would over HTTP: for tests and simulations."""

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from payrelay_simulator.records import Merchant
from payrelay_simulator.routes import PREFIX
from payrelay_simulator.tokens import basic_authorization
from payrelay_simulator.world import Call, Outcome, World

_encoder = msgspec.json.Encoder(decimal_format="number")


class Caller:
    """One merchant's side of the merchant API. It signs in for its first call and keeps that token until told."""

    def __init__(self, world: World, merchant: Merchant | None = None) -> None:
        self._world = world
        self._merchant = world.merchants[0] if merchant is None else merchant
        self.authorization = ""

    def sign_in(self) -> Outcome:
        """Ask for an access token; the calls that follow present it."""
        outcome = self._world.handle(
            Call(
                method="POST",
                path=f"{PREFIX}oauth/token",
                authorization=basic_authorization(self._merchant),
                content_type="application/x-www-form-urlencoded",
                body=b"grant_type=client_credentials",
            )
        )
        self.authorization = f"Bearer {outcome.document.get('access_token', '')}"
        return outcome

    def get(self, path: str, **query: str) -> Outcome:
        """Read from a path under the merchant API."""
        return self._call("GET", path, query=urlencode(query))

    def post(self, path: str, body: Mapping[str, object]) -> Outcome:
        """Send a JSON body to a path under the merchant API."""
        return self._call("POST", path, body=_encoder.encode(body))

    def _call(self, method: str, path: str, *, query: str = "", body: bytes = b"") -> Outcome:
        if not self.authorization:
            self.sign_in()
        return self._world.handle(
            Call(
                method=method,
                path=PREFIX + path,
                query=query,
                authorization=self.authorization,
                content_type="application/json",
                body=body,
            )
        )
