"""Turns what was measured of requests into tables: where the time goes, what promises cost, what doors cost. Pure."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

import aims
import meters
import steps
from contenders import NGINX, POSTGRESQL, SQLITE, Kind

SHORT: Final = {SQLITE: "SQLite", POSTGRESQL: "PostgreSQL"}
SHOWN_US: Final = 0.05
SHOWN_CALLS: Final = 0.2
"""Rows in which nothing reaches that are left out."""
WHOLE: Final = "nothing"
ALL: Final = "all of these"
PART_OF_OWNERS: Final = "second-look"
"""Is measured alone, and left out with the owners too."""

PROMISES: Final = {
    "digests": ("digests of rows: what somebody changed in the database counts for nothing", tuple(Kind)),
    "history": ("the history: an entry for each change, chained to the one before", tuple(Kind)),
    "seals": ("sealed calls and answers: whoever reads the disk learns no secret", (Kind.CHARGE, Kind.REPLAY)),
    "owners": ("owners of orders: nobody sees or charges what is another's", (Kind.READ, Kind.CHARGE)),
    PART_OF_OWNERS: ("of these, the look after the order's guard is taken", (Kind.CHARGE,)),
    "events": ("events: what happened is told, each in its place and once", (Kind.CHARGE,)),
    "memory": ("memory of commits: what a failover loses is noticed, and brought back", (Kind.CHARGE,)),
    "limits": ("limits of connections and of requests under way: nobody takes all places", tuple(Kind)),
    "metrics": ("metrics", tuple(Kind)),
    "log": ("a line in the log for each request", tuple(Kind)),
}
"""What can be left out, in words, and the kinds of request that do it at all."""

DOORS: Final = {
    "granian": "Granian, as the service has it",
    "uvicorn": "uvicorn, on uvloop and httptools",
    "protocol": "a bare protocol on httptools, without limits and timeouts",
}
"""Servers that do nothing but read a request and answer it, in words."""


class Column(msgspec.Struct, frozen=True):
    """One kind of request, answered by one contender."""

    kind: Kind
    contender: str

    @property
    def head(self) -> str:
        """What the column is called."""
        return f"{self.kind.value}, {SHORT.get(self.contender, self.contender)}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one load cost.

    Attributes:
        column: what was asked of whom.
        round_number: in which round.
        without: what the service left out.
        requests: how many answers there were.
        cpu_ns: the processor time, by what threads are for; of nginx as a whole.
        foreign_share: what anybody else took of both cores.
        problems: why it doesn't count.
    """

    column: Column
    round_number: int
    without: str = WHOLE
    requests: int
    cpu_ns: dict[str, int]
    foreign_share: float
    problems: list[str]

    @property
    def us(self) -> float:
        """The processor time of a request."""
        return sum(self.cpu_ns.values()) / self.requests / 1e3


class Watched(msgspec.Struct, kw_only=True):
    """What was seen of one column beside its processor time.

    Attributes:
        steps: samples of the event loop's thread, by step.
        unnamed: of those that no step names, the innermost frames.
        programs: samples of all threads, by kind of program.
        calls: system calls.
        calls_requests: the requests that made them.
    """

    steps: Counter[str] = msgspec.field(default_factory=Counter)
    unnamed: Counter[str] = msgspec.field(default_factory=Counter)
    programs: Counter[str] = msgspec.field(default_factory=Counter)
    calls: Counter[str] = msgspec.field(default_factory=Counter)
    calls_requests: int = 0


class Costs:
    """All loads of one run."""

    def __init__(self, measured: list[Measured]) -> None:
        self._measured = measured

    def of(self, column: Column, without: str = WHOLE) -> list[Measured]:
        """Gives the loads of a column in which there were answers."""
        return [each for each in self._measured if each.column == column and each.without == without and each.requests]

    def by_thread_us(self, column: Column) -> dict[str, float]:
        """Gives the processor time of a request by what threads are for; over all rounds, so that the sum is exact."""
        found = self.of(column)
        requests = sum(each.requests for each in found)
        return {name: sum(each.cpu_ns.get(name, 0) for each in found) / requests / 1e3 for name in meters.THREADS}

    def mean_us(self, column: Column, without: str = WHOLE) -> float:
        """Gives the processor time of a request over all rounds."""
        found = self.of(column, without)
        return sum(sum(each.cpu_ns.values()) for each in found) / sum(each.requests for each in found) / 1e3

    def nginx_us(self, kind: Kind) -> float:
        """Gives nginx's processor time for a request of this kind; a replay is compared with its charge."""
        return self.mean_us(Column(Kind.CHARGE if kind is Kind.REPLAY else kind, NGINX))

    def times_nginx(self, column: Column, without: str = WHOLE) -> float:
        """Gives the processor time of a request in multiples of nginx's."""
        return self.mean_us(column, without) / self.nginx_us(column.kind)

    def saved_us(self, column: Column, without: str) -> list[float]:
        """Gives what a request took less without something in each round, the least first."""
        whole: dict[int, list[float]] = {}
        for each in self.of(column):
            whole.setdefault(each.round_number, []).append(each.us)
        return sorted(
            statistics.mean(whole[each.round_number]) - each.us
            for each in self.of(column, without)
            if each.round_number in whole
        )

    def range_of(self, column: Column) -> str:
        """Writes the lowest and the highest round."""
        found = [each.us for each in self.of(column)]
        return f"{min(found):,.0f} to {max(found):,.0f}"


def profile_lines(costs: Costs, watched: dict[Column, Watched], lacking: Iterable[str]) -> list[str]:
    """Writes the tables of where the time goes; ``lacking`` says what couldn't be measured."""
    columns = list(watched)
    heads = [column.head for column in columns]
    threads = {column: costs.by_thread_us(column) for column in columns}
    in_steps = [_parts_us(watched[each].steps, threads[each][meters.LOOP]) for each in columns]
    in_programs = [_parts_us(watched[each].programs, sum(threads[each].values())) for each in columns]
    samples = [sum(each.steps.values()) for each in watched.values()]
    by_thread = [
        ["**all**", *(f"**{sum(threads[column].values()):,.0f}**" for column in columns)],
        ["lowest and highest round", *(costs.range_of(column) for column in columns)],
        ["times nginx's", *(f"{costs.times_nginx(column):.1f} x" for column in columns)],
        *_rows(meters.THREADS, list(threads.values()), SHOWN_US, bold=True),
    ]
    lines = [
        f"The event loop's thread was sampled {min(samples):,} to {max(samples):,} times for each kind.",
        "",
        "**By thread**, in µs of processor time of one request:",
        "",
        *_table(["of a request", *heads], by_thread),
        "",
        "**The event loop's thread by step**, in µs; the rows add up to its row above:",
        "",
        *_table(["step", *heads], _rows(_step_names(in_steps), in_steps, SHOWN_US)),
    ]
    for text in lacking:
        lines += ["", f"Not measured by program or by system call: {text}."]
    if all(each.programs for each in watched.values()):
        names = [*(kind for kind, _ in meters.KINDS_OF_PROGRAM), meters.OTHER_PROGRAM]
        table = _table(["program", *heads], _rows(names, in_programs, SHOWN_US))
        lines += ["", "**By program**, all threads, in µs:", "", *table]
    if all(each.calls_requests for each in watched.values()):
        lines += ["", "**System calls** of one request:", "", *_calls_table(watched)]
    return lines


def _calls_table(watched: dict[Column, Watched]) -> list[str]:
    found = [{name: count / each.calls_requests for name, count in each.calls.items()} for each in watched.values()]
    names = {name for each in found for name in each}
    most_first = sorted(names, key=lambda name: (-max(each.get(name, 0.0) for each in found), name))
    body = [["all", *(f"{sum(each.values()):.1f}" for each in found)], *_rows(most_first, found, SHOWN_CALLS)]
    return _table(["call", *(column.head for column in watched)], body)


def _step_names(in_steps: list[dict[str, float]]) -> list[str]:
    """Gives all steps that were seen, in the table's order; those of SQLite together."""

    def place(name: str) -> tuple[int, str]:
        return steps.ORDER.index(steps.SQLITE if name.startswith(steps.SQLITE) else name), name

    return sorted({name for each in in_steps for name in each}, key=place)


def promise_lines(costs: Costs, columns: list[Column], wanted: list[str]) -> list[str]:
    """Writes the table of what promises cost, and what would have to be given up for each floor."""
    body = [[PROMISES[name][0], *(_cost(costs, column, name) for column in columns)] for name in wanted]
    body.append(["all of these together", *(_cost(costs, column, ALL) for column in columns)])
    body += [
        [f"**{head}**", *(f"**{costs.times_nginx(column, name):.1f} x**" for column in columns)]
        for head, name in (("the whole service, times nginx's", WHOLE), ("without all of these, times nginx's", ALL))
    ]
    body.append(["the floor", *(f"{_floor(column):g} x" for column in columns)])
    return [
        "",
        *_table(["without", *(column.head for column in columns)], body),
        "",
        "What would have to be given up for each floor, the dearest first:",
        "",
        *(_verdict(costs, column, wanted) for column in columns),
    ]


def _cost(costs: Costs, column: Column, name: str) -> str:
    saved = costs.saved_us(column, name)
    if not saved:
        return "-"
    middle = statistics.median(saved)
    return f"{middle:.0f} ({saved[0]:.0f} to {saved[-1]:.0f}), {middle / costs.nginx_us(column.kind):.1f} x"


def _verdict(costs: Costs, column: Column, wanted: list[str]) -> str:
    """Says of a floor whether it is kept, and without what it would be.

    Costs that were measured singly add up to more than they cost together. So each counts for its part of what is left
    out with all of them, and what is left then is said too. A cost counts where every round had it: others are as small
    as the rounds differ.
    """
    whole, floor = costs.times_nginx(column), _floor(column)
    if whole <= floor:
        return f"- {column.head}: {whole:.1f} x, within its floor of {floor:g} x."
    each_costs = {
        name: statistics.median(saved) / costs.nginx_us(column.kind)
        for name in wanted
        if name != PART_OF_OWNERS and (saved := costs.saved_us(column, name)) and saved[0] > 0
    }
    without_all = costs.times_nginx(column, ALL)
    told = (
        f"- {column.head}: {whole:.1f} x, and the floor is {floor:g} x. Without all of these it is {without_all:.1f} x."
    )
    added_up = sum(each_costs.values())
    if not added_up:
        return told
    part = min(1.0, max(0.0, whole - without_all) / added_up)
    left, given_up = whole, list[str]()
    for name in sorted(each_costs, key=lambda name: -each_costs[name]):
        if left > floor:
            left -= part * each_costs[name]
            given_up.append(name)
    if left > floor:
        return told
    scaled = (
        f" Added up, they cost {1 / part:.1f} times what they cost together, so each counts for less."
        if part < 1
        else ""
    )
    return f"{told}{scaled} Then {', '.join(given_up)} would be enough."


def _floor(column: Column) -> float:
    """Gives the project's floor for the processor time of a request, in multiples of nginx's."""
    [floor] = [
        aim.floor
        for aim in aims.AIMS
        if (aim.kind, aim.contender) == (column.kind, column.contender) and aim.is_ceiling and aim.form is aims.times
    ]
    assert floor is not None
    return floor


def door_lines(costs: Costs) -> list[str]:
    """Writes the table of doors with nothing behind them."""
    columns = {words: Column(Kind.REPLAY, name) for name, words in DOORS.items()}
    body = [
        [words, f"{costs.mean_us(column):.1f}", costs.range_of(column), f"{costs.times_nginx(column):.1f} x"]
        for words, column in columns.items()
    ]
    return ["", *_table(["door", "µs of processor time", "lowest and highest round", "times nginx's charge"], body)]


def _parts_us(samples: Counter[str], whole_us: float) -> dict[str, float]:
    """Divides a time as samples are divided; gives nothing where there are none."""
    total = sum(samples.values())
    return {name: whole_us * count / total for name, count in samples.items()}


def _rows(
    names: Iterable[str], found: list[dict[str, float]], least: float, *, bold: bool = False
) -> Iterator[list[str]]:
    """Gives a row for each name that reaches so much anywhere."""
    for name in names:
        values = [each.get(name, 0.0) for each in found]
        if max(values) >= least:
            yield [f"**{name}**" if bold else name, *(f"{value:.1f}" for value in values)]


def _table(head: list[str], body: Iterable[list[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *body)]
