"""Keyed hashes by which rows are found or told apart: who reads the database can neither read nor guess their texts.

A reference may be an e-mail address, and a plain hash of one could be guessed. Whoever has the store's secret can still
compare a guess with a hash that lies somewhere.
"""

from typing import Final

from payrelay.core.events.destinations import usual_spelling
from payrelay.core.keyed_digest import DigestKey

PURPOSE: Final = "lookup in checkouts"
"""Of the keyed hashes of checkouts; never changed."""
ADDRESS_PURPOSE: Final = "address of an endpoint"
"""Of those of endpoints; never changed."""


class Lookups:
    """Makes the hashes of checkouts and endpoints. ``secret`` is the key of the audit chain."""

    def __init__(self, secret: bytes) -> None:
        self._key = DigestKey(secret, PURPOSE)
        self._address_key = DigestKey(secret, ADDRESS_PURPOSE)

    def reference(self, text: str) -> str:
        """Gives the hash of a client's own name for a customer."""
        return self._key.digest("reference", text)

    def key(self, text: str) -> str:
        """Gives the hash of an Idempotency-Key."""
        return self._key.digest("key", text)

    def address(self, merchant: str, principal: str, url: str) -> str:
        """Gives the hash of an address for events: equal ones of one principal on an account have one hash."""
        return self._address_key.digest(merchant, principal, usual_spelling(url))
