"""The names under which the service keeps what the person of an identity provider does.

Rules:

1. The provider's own name of a person may be an e-mail address. Keys, permits, counts and lines of the log have a keyed
   digest in its place. So who reads the database or the log can't even try a name that he guesses. Only a checkout has
   the name itself, as its ``customer_reference``, which an erasure deletes.
2. The digest needs no customer: a person keeps one name before there is a card, with another card, and after an
   erasure.
3. The name is a part of stored Idempotency-Keys, and so it never changes. The key of the digests is made of the audit
   chain's, which no rotation of the encryption key changes; each installation has its own.
"""

from typing import Final
from urllib.parse import quote, unquote

from payrelay.core.keyed_digest import DigestKey

PURPOSE: Final = "person of an identity provider"
"""Of the keyed digests; never changed."""
DIGITS: Final = 24
"""96 bits: no two of all persons have one name, and each operation of an app has it three times."""
_NAMED: Final = "person"
_SAID: Final = "reference"


class PersonNames:
    """Makes the names of persons. ``secret`` is the key of the audit chain."""

    def __init__(self, secret: bytes) -> None:
        self._key = DigestKey(secret, PURPOSE)

    def keys_of(self, reference: str) -> str:
        """Gives the prefix of a person's Idempotency-Keys, by which the person's requests are counted too."""
        return f"{_NAMED}/{self._key.digest('keys', reference)[:DIGITS]}"

    def credential_id(self, issuer: str, person: str) -> str:
        """Gives the id that the log has of a person's tokens."""
        return f"idp_{self._key.digest('credential', issuer, person)[:DIGITS]}"

    def key_as_stored(self, idempotency_key: str) -> str | None:
        """Gives the stored key of ``reference/<person>/<key>``, the name percent-encoded; None for any other text.

        A server or a person at the desk says it so: neither can make the digest.
        """
        noun, _, rest = idempotency_key.partition("/")
        quoted, slash, key = rest.partition("/")
        if noun != _SAID or not quoted or not slash or quote(unquote(quoted), safe="") != quoted:
            return None
        return f"{self.keys_of(unquote(quoted))}/{key}"
