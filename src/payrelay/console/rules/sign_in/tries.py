"""How often somebody may try to sign in: passwords, codes and passkeys of one operator, and anything from one address.

One law for all counts:

1. A try is counted before it is made. A count begins with its first try, and is over WINDOW_MS later.
2. A count that is full refuses, and a refused try is in no count. So nobody is kept out for longer than WINDOW_MS by
   what was tried before, however often they are refused.
3. Whoever gets in takes their own tries off the address, and begins their own counts anew. So only what failed, or was
   not completed, is left in them.
"""

import hashlib
from typing import Final

import msgspec

from payrelay.core.access.networks import network_of

WINDOW_MS: Final = 15 * 60_000
"""How long a count goes on from its first try."""


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
"""From one address of the network (``core.access.networks``), which a whole office may share."""


class Counted(msgspec.Struct, frozen=True):
    """A count: its limit, and whose it is."""

    limit: TryLimit
    whose: str

    @property
    def subject(self) -> str:
        """The name under which tries are counted; it doesn't show an e-mail address, and has one length."""
        return f"{self.limit.kind}/{hashlib.sha256(self.whose.encode(errors='replace')).hexdigest()[:32]}"


def of_address(address: str) -> Counted:
    """Gives the count of whoever shares an address of the network."""
    return Counted(ADDRESS, network_of(address))
