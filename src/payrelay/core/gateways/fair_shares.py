"""The fair shares of a gateway's budget: which of the calls that wait get a permit now.

Rules:

1. Each principal that uses the budget, or waits for it, has a share, and all their shares are equal. Payrelay's own
   inquiries have a quarter of the budget, whatever the number of principals. What one doesn't need, others may use.
2. Within a principal its keys have a share, the effects of its apps together another, and the reads of its apps
   together half of one. One app uses at most a fifth of the budget.
3. Who is over its share leaves free twice what the others used in the last window, up to their shares. So a call within
   its share finds a permit, however many calls others make at once.
4. A tenth of the budget is a reserve for those who ask seldom: who already uses as many permits as the reserve has
   leaves the reserve free.
5. An access token takes any free permit, because everybody waits for it. It counts for nobody's share, and nothing is
   kept for the next one.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

RESERVED_OF: Final = 10
"""One permit of so many is reserved. A smaller budget has no reserve: it would lose too much of it."""
OF_ONE_APP: Final = 5
"""One app uses at most one permit of so many: a customer pays once and looks a few times."""


class BudgetShare(StrEnum):
    """The parts of a principal that share its permits."""

    KEYS = "keys"
    EFFECTS = "effects"
    """What its apps charge and cancel."""
    READS = "reads"
    """What its apps and its customers' pages read."""
    TOKEN = "token"  # noqa: S105, no password
    """Access tokens, which are Payrelay's own."""


_WEIGHTS: Final[Mapping[BudgetShare, int]] = {BudgetShare.KEYS: 2, BudgetShare.EFFECTS: 2, BudgetShare.READS: 1}
KEPT_TIMES: Final = 2
"""So many times what a principal used is left free for it, so that what it can use grows with each window."""
_SHARES: Final = frozenset(part.value for part in BudgetShare)
_PRINCIPALS_TIMES: Final = 3
"""So many times the share of Payrelay's own inquiries is that of all principals together. Lost replies must be resolved
within a minute however few permits the principals leave, and the replies that are lost grow with all their calls."""


class Requester(NamedTuple):
    """Who a call to the gateway is for.

    Attributes:
        principal: empty for what Payrelay does by itself.
        app: the customer or order of an app, or of a customer's page; empty for a key.
    """

    principal: str = ""
    app: str = ""

    @classmethod
    def of_app(cls, principal: str, subject: str) -> "Requester":
        """Makes that of an app; ``subject`` names its customer or order, and no person in clear.

        It is digested to be short: a row of the permits has it.
        """
        return cls(principal, hashlib.sha256(subject.encode()).hexdigest()[:16])


PAYRELAY: Final = Requester()


class Consumer(NamedTuple):
    """One that takes permits: an app within a part of a principal, or the part as a whole."""

    principal: str
    part: BudgetShare
    app: str = ""

    @property
    def whole_part(self) -> "Consumer":
        """The part as a whole."""
        return self._replace(app="")

    @property
    def text(self) -> str:
        """The form in which a permit's row names its last consumer."""
        return f"{self.part} {self.app} {self.principal}"

    @classmethod
    def parse(cls, text: object) -> "Consumer":
        """Reads ``text``; gives Payrelay itself for what is no such text."""
        part, _, rest = (text if isinstance(text, str) else "").partition(" ")
        app, _, principal = rest.partition(" ")
        return cls(principal, BudgetShare(part), app) if part in _SHARES else OURS


OURS: Final = Consumer("", BudgetShare.KEYS)


class Usage(NamedTuple):
    """The permits of one consumer: those in use, and those that are free and were its own within the last window.

    A permit is in use until one window after the end of its call.
    """

    consumer: Consumer
    in_use: int
    recent: int


class Choice(NamedTuple):
    """The calls that get a permit, in the order of their turns, and the consumers that can get no further one now.

    A part as a whole among the latter stands for all its apps.
    """

    given: tuple[Consumer, ...]
    refused: frozenset[Consumer]


Name = TypeVar("Name", bound=Hashable)


def choose(wanted: Sequence[Consumer], usages: Iterable[Usage], *, calls: int) -> Choice:
    """Chooses among calls that wait, in the order of their turns, those that get one of the free permits now.

    ``calls`` is the size of the budget. A call that gets none is passed over, and holds up none behind it.
    """
    shares = _Shares(wanted, usages, calls)
    given: list[Consumer] = []
    refused: list[Consumer] = []
    for consumer in wanted:
        (given if shares.take(consumer) else refused).append(consumer)
    # What a part refuses to one app, it refuses to all, unless that app alone has enough.
    return Choice(
        tuple(given), frozenset(each if shares.may_take(each.whole_part) else each.whole_part for each in refused)
    )


class _Counts(Generic[Name]):
    """The permits of several that share them: in use, used lately, and needed by what waits too."""

    def __init__(self) -> None:
        self.used: Counter[Name] = Counter()
        self.lately: Counter[Name] = Counter()
        self.needed: Counter[Name] = Counter()

    def add(self, name: Name, used: int, recent: int, waiting: int) -> None:
        self.used[name] += used
        self.lately[name] += used + recent
        self.needed[name] += used + recent + waiting

    def allowed(self, name: Name, capacity: int, weight_of: Callable[[Name], int]) -> int:
        """Gives how many permits one of them may use: those that the others don't use, and that aren't kept for them.

        As much as it used lately, up to its share, it may use in any case. Otherwise room for others to grow would be
        taken from it while a third one uses more than its share. Nothing is kept where they are more than the permits.
        """
        weights = {each: weight_of(each) for each, needed in self.needed.items() if needed}
        whole = sum(weights.values())
        shares = {each: capacity * weight // whole for each, weight in weights.items()}
        kept = sum(
            max(self.used[each], min(KEPT_TIMES * self.needed[each], share))
            for each, share in shares.items()
            if each != name
        )
        return max(capacity - kept, min(self.lately[name], shares.get(name, 0)))


class _Shares:
    def __init__(self, wanted: Sequence[Consumer], usages: Iterable[Usage], calls: int) -> None:
        self._capacity = calls
        self._reserve = calls // RESERVED_OF
        self._of_one_app = max(1, calls // OF_ONE_APP)
        self._principals: _Counts[str] = _Counts()
        self._parts: defaultdict[str, _Counts[BudgetShare]] = defaultdict(_Counts)
        self._used: Counter[Consumer] = Counter()
        self._free = calls
        for consumer, in_use, recent in usages:
            self._count(consumer, used=in_use, recent=recent)
            self._free -= in_use
        for consumer in wanted:
            self._count(consumer, waiting=1)

    def take(self, consumer: Consumer) -> bool:
        """Counts a permit as taken, and returns True, where the consumer may have one."""
        if not self.may_take(consumer):
            return False
        self._count(consumer, used=1, waiting=-1)
        self._free -= 1
        return True

    def may_take(self, consumer: Consumer) -> bool:
        """Tells whether the consumer may have a permit now."""
        principal, part, app = consumer
        if part is BudgetShare.TOKEN:
            return self._free > 0
        parts = self._parts[principal]
        reserve = 0 if parts.used[part] < self._reserve else self._reserve
        if self._free <= reserve or (app and self._used[consumer] >= self._of_one_app):
            return False
        of_principal = self._principals.allowed(principal, self._capacity - reserve, self._weight_of_principal)
        if self._principals.used[principal] >= of_principal:
            return False
        return parts.used[part] < parts.allowed(part, of_principal, _WEIGHTS.__getitem__)

    def _count(self, consumer: Consumer, *, used: int = 0, recent: int = 0, waiting: int = 0) -> None:
        principal, part, _ = consumer
        if part is BudgetShare.TOKEN:
            self._capacity -= used
            return
        self._used[consumer] += used
        self._principals.add(principal, used, recent, waiting)
        self._parts[principal].add(part, used, recent, waiting)

    def _weight_of_principal(self, principal: str) -> int:
        if principal:
            return _PRINCIPALS_TIMES
        return max(1, sum(bool(name and needed) for name, needed in self._principals.needed.items()))
