"""The gateway's limit on calls: so many in any sliding window, token calls included."""

from collections import defaultdict, deque
from datetime import datetime, timedelta


class Budget:
    """Counts accepted calls per key. A refused call takes no place."""

    def __init__(self) -> None:
        self._taken: defaultdict[str, deque[datetime]] = defaultdict(deque)

    def has_taken(self, key: str, now: datetime, *, calls: int, window_s: float) -> bool:
        """Take a place for one call and say True, or say False where all `calls` of the window are taken."""
        taken = self._taken[key]
        oldest = now - timedelta(seconds=window_s)
        while taken and taken[0] <= oldest:
            taken.popleft()
        if len(taken) >= calls:
            return False
        taken.append(now)
        return True
