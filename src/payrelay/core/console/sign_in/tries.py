"""How often somebody may try: passwords and codes of one operator, and anything from one address."""

import hashlib
from typing import Final

import msgspec

WINDOW_MS: Final = 15 * 60_000
"""After so long without a new try the count begins again."""


class TryLimit(msgspec.Struct, frozen=True):
    """At most ``tries`` of one kind within WINDOW_MS."""

    kind: str
    tries: int


PASSWORD: Final = TryLimit("password", 10)
"""Of one e-mail address, also where no operator has it."""
CODE: Final = TryLimit("code", 5)
"""Of one operator: whoever guesses five of a million codes each time needs years."""
PASSKEY: Final = TryLimit("passkey", 20)
"""Of one operator: nobody guesses a signature, but each takes time to check. It has a count of its own: whoever guesses
at codes keeps no passkey out.
"""
ADDRESS: Final = TryLimit("address", 60)
"""From one address of the network, which a whole office may share."""


def subject_of(limit: TryLimit, whose: str) -> str:
    """Gives the name under which tries are counted; it doesn't show an e-mail address, and has one length."""
    return f"{limit.kind}/{hashlib.sha256(whose.encode(errors='replace')).hexdigest()[:32]}"
