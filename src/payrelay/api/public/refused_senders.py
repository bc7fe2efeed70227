"""Says which refused notifications are stored, so that forged ones neither fill the inbox nor keep the store busy.

What is refused for one address doesn't count for another: a stranger can't keep out what the gateway sends while the
secret is wrong.
"""

from typing import Final

from payrelay.core.access.networks import network_of
from payrelay.core.payments.schedules import DAY_MS

OF_AN_ADDRESS_MAX: Final = 30
"""Refused notifications of one address that this process stores in a day. In the 30 days for which the inbox has them
that is less than the inbox takes of a merchant (``store.inbox.REFUSED_MAX``)."""
ADDRESSES_MAX: Final = 4_096
"""Addresses that are told apart in a day; all others share the places of one."""
_OTHERS: Final = "others"


class RefusedSenders:
    """Counts the refused notifications of a day, by account and network."""

    def __init__(self, *, of_an_address_max: int = OF_AN_ADDRESS_MAX) -> None:
        self._of_an_address_max = of_an_address_max
        self._day = -1
        self._counts: dict[tuple[str, str], int] = {}

    def may_store(self, account: str, address: str, now_ms: int) -> bool:
        """Counts one more; True where it is to be stored. Each day begins anew."""
        day = now_ms // DAY_MS
        if day != self._day:
            self._day = day
            self._counts.clear()
        sender = (account, network_of(address))
        if sender not in self._counts and len(self._counts) >= ADDRESSES_MAX:
            sender = (account, _OTHERS)
        count = self._counts[sender] = self._counts.get(sender, 0) + 1
        return count <= self._of_an_address_max
