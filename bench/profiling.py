"""Says where the processor time of a request goes, so that the rows add up, and what each promise costs.

    python bench/profiling.py [--only profile,promises,doors] [--rounds 3] [--seconds 3] [--stores sqlite,postgresql]
        [--without digests,log] [--keep-docs]

*Profile*: each thread's time is the scheduler's own count. That of the event loop is divided by samples of its stack
(``steps``). What programs it runs in and what it asks of the kernel is shown beside it where ``perf`` is installed.

*Promises*: the service runs with one promise left out (``experiment``), in turns with the whole service. What it takes
less is what the promise costs. Nginx runs in the same rounds, for the multiples.

*Doors*: three servers that do nothing but read a request and answer it (``doors``).

It isn't called ``profile``, because a module of the standard library is.
"""

import argparse
import datetime as dt
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

import aims
import load
import measure
import meters
import postgresql
import programs
import run
import section
import steps
from contenders import (
    NGINX,
    POSTGRESQL,
    SQLITE,
    Kind,
    Nginx,
    PayrelayPostgresql,
    PayrelaySqlite,
    Served,
    Setting,
    relay_served,
)
from results import CALM_SHARE

HERE: Final = Path(__file__).parent
PARTS: Final = ("profile", "promises", "doors")
NAMES: Final = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
SHORT: Final = {SQLITE: "SQLite", POSTGRESQL: "PostgreSQL"}
CONNECTIONS: Final = 64
WARM_UP_S: Final = 1
REST_S: Final = 0.3
"""After it a service waits for requests again, and each of its threads for what it usually waits for."""
SAMPLED_TIMES: Final = 3
"""The load under which stacks are sampled lasts so many times as long: what is seldom needs many samples."""
SHOWN_US: Final = 0.05
SHOWN_CALLS: Final = 0.2
"""Rows in which nothing reaches that are left out."""
WHOLE: Final = "nothing"
ALL: Final = "all of these"

PROMISES: Final = {
    "digests": ("digests of rows: what somebody changed in the database counts for nothing", tuple(Kind)),
    "history": ("the history: an entry for each change, chained to the one before", tuple(Kind)),
    "seals": ("sealed calls and answers: whoever reads the disk learns no secret", (Kind.CHARGE, Kind.REPLAY)),
    "owners": ("owners of orders: nobody sees or charges what is another's", (Kind.READ, Kind.CHARGE)),
    "second-look": ("of these, the look after the order's guard is taken", (Kind.CHARGE,)),
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
    """One kind of request on one database."""

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


class Arguments(argparse.Namespace):
    """What can be said on the command line."""

    only: str
    rounds: int
    seconds: int
    stores: str
    without: str
    keep_docs: bool


def main() -> int:
    """Measures, prints, and writes its sections of the docs."""
    arguments = _parse()
    try:
        for part in arguments.only.split(","):
            with run.stage() as setting:
                bench = Bench(setting, arguments)
                if part == "profile":
                    lines = profile(bench)
                elif part == "promises":
                    lines = promises(bench, arguments.without.split(","))
                else:
                    lines = doors_measured(bench)
                _end(part, bench, lines, arguments)
    except programs.ProgramError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


def _parse() -> Arguments:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"which parts, by comma ({','.join(PARTS)})")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds")
    parser.add_argument("--seconds", type=int, default=3, help="how long each load lasts")
    parser.add_argument("--stores", default=",".join(NAMES), help="which databases, by comma")
    parser.add_argument("--without", default=",".join(PROMISES), help="which promises are left out in turn, by comma")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    return parser.parse_args(namespace=Arguments())


def _end(part: str, bench: "Bench", lines: list[str], arguments: Arguments) -> None:
    """Keeps the raw figures, and writes the tables down where they count."""
    foreign = statistics.median(each.foreign_share for each in bench.measured)
    lines = [f"{lines[0]} Other work took {foreign:.1%} of both cores, at the median.".replace("%", " %"), *lines[1:]]
    run.RAW_FOLDER.mkdir(parents=True, exist_ok=True)
    raw = run.RAW_FOLDER / f"{part}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}.json"
    raw.write_bytes(msgspec.json.format(msgspec.json.encode(bench.measured)))
    print("\n".join(["", *lines, "", f"raw results: {raw}"]))
    problems = [
        f"{each.column.head}, without {each.without}: {text}" for each in bench.measured for text in each.problems
    ]
    if problems:
        raise programs.ProgramError("it doesn't count:\n" + "\n".join(problems))
    if arguments.keep_docs:
        return
    if foreign > CALM_SHARE:
        print("docs/ is left as it was: the machine was busy with other work")
    else:
        section.write(part, lines, program="profiling")


class Bench:
    """Starts services, loads them and keeps what they cost."""

    def __init__(self, setting: Setting, arguments: Arguments) -> None:
        self.setting = setting
        self.stores = [name for name in NAMES if name in arguments.stores.split(",")]
        self.rounds = arguments.rounds
        self.seconds = arguments.seconds
        self.measured: list[Measured] = []
        self._folders = 0
        self._cluster: postgresql.Cluster | None = None

    @property
    def columns(self) -> list[Column]:
        """All kinds of request, each on all databases."""
        return [Column(kind, NAMES[store]) for kind in Kind for store in self.stores]

    def service(self, store: str, *options: str) -> "Service":
        """Makes a service with a database of its own, which ``experiment`` starts with some options."""
        self._folders += 1
        folder = self.setting.folder / f"service-{self._folders}"
        folder.mkdir()
        program = [sys.executable, str(HERE / "experiment.py"), *options]
        setting = msgspec.structs.replace(self.setting, folder=folder)
        if store == "sqlite":
            return Service(store, PayrelaySqlite(setting, program))
        if self._cluster is None:
            self._cluster = postgresql.Cluster(self.setting.folder)
        contender = PayrelayPostgresql(setting, program, cluster=self._cluster, database=f"payrelay_{self._folders}")
        return Service(store, contender)

    def nginx(self, round_number: int) -> None:
        """Measures nginx, with which all are compared."""
        _say(f"round {round_number}: nginx")
        contender = Nginx(self.setting)
        with contender.served() as served:
            for kind in contender.kinds:
                self.whole(served, Column(kind, NGINX), round_number)

    def whole(self, served: Served, column: Column, round_number: int) -> None:
        """Measures what one kind of request costs a program as a whole."""
        self.send(served, column.kind, WARM_UP_S)
        sample = self._sample(served, column, round_number, "")
        self._keep(sample, column, round_number, WHOLE, {"all": round(sample.cpu_s * 1e9)})

    def cost(self, service: "Service", served: Served, kind: Kind, round_number: int, without: str = WHOLE) -> None:
        """Measures what one kind of request costs a service, by thread."""
        assert served.pid is not None
        column = Column(kind, NAMES[service.store])
        prefix = self.prefix(service, served, kind)
        self.send(served, kind, WARM_UP_S, prefix)
        time.sleep(REST_S)
        before = meters.threads(served.pid)
        what_for = {number: thread.what_for for number, thread in before.items()}
        sample = self._sample(served, column, round_number, prefix)
        after = meters.threads(served.pid, what_for)
        if sample.problems and not sample.sent.wrong:  # something starved a process; a wrong answer has no such excuse
            before = after
            sample = self._sample(served, column, round_number, prefix)
            after = meters.threads(served.pid, what_for)
        self._keep(sample, column, round_number, without, dict(meters.spent_ns(before, after)))

    def prefix(self, service: "Service", served: Served, kind: Kind) -> str:
        """Gives where the orders of a replay begin; makes their charges where they aren't made yet."""
        if kind is not Kind.REPLAY:
            return ""
        if not service.replay_prefix:
            service.replay_prefix = load.new_replay_prefix()
            load.prepare_replay(served, service.replay_prefix)
        return service.replay_prefix

    def send(self, served: Served, kind: Kind, seconds: int, prefix: str = "") -> load.Sent:
        """Sends load; raises ProgramError where an answer is wrong."""
        wanted = load.Load(kind=kind, connections=CONNECTIONS, duration_s=seconds)
        sent = load.send(served, wanted, self.setting.cores.load, prefix)
        if sent.wrong or not sent.requests:
            raise programs.ProgramError(f"{sent.wrong} answers were wrong: {sent.complaint}")
        return sent

    def _sample(self, served: Served, column: Column, round_number: int, prefix: str) -> measure.Sample:
        wanted = load.Load(kind=column.kind, connections=CONNECTIONS, duration_s=self.seconds)
        case = measure.Case(contender=column.contender, round_number=round_number, load=wanted, replay_prefix=prefix)
        return measure.measure(served, self.setting.gateway, self.setting.cores, case, self.setting.folder)

    def _keep(
        self, sample: measure.Sample, column: Column, round_number: int, without: str, cpu_ns: dict[str, int]
    ) -> None:
        self.measured.append(
            Measured(
                column=column,
                round_number=round_number,
                without=without,
                requests=sample.sent.requests,
                cpu_ns=cpu_ns,
                foreign_share=sample.foreign_share,
                problems=sample.problems,
            )
        )

    def of(self, column: Column, without: str = WHOLE) -> list[Measured]:
        """Gives what was measured of a column, one for each round in which there were answers."""
        return [each for each in self.measured if each.column == column and each.without == without and each.requests]

    def nginx_us(self, kind: Kind) -> float:
        """Gives nginx's processor time for a request of this kind; a replay is compared with its charge."""
        return _mean_us(self.of(Column(Kind.CHARGE if kind is Kind.REPLAY else kind, NGINX)))


class Service:
    """A service with a database of its own."""

    def __init__(self, store: str, contender: PayrelaySqlite | PayrelayPostgresql) -> None:
        self.store = store
        self.contender = contender
        self.replay_prefix = ""


def profile(bench: Bench) -> list[str]:
    """Measures where the time goes; gives the lines of the section."""
    plain = {store: bench.service(store) for store in bench.stores}
    stacks = {store: bench.setting.folder / f"{store}.stacks" for store in bench.stores}
    sampled = {store: bench.service(store, "--samples", str(stacks[store])) for store in bench.stores}
    watched = {column: Watched() for column in bench.columns}
    lacking = [meters.missing("perf", "linux-perf")]
    for number in range(1, bench.rounds + 1):
        bench.nginx(number)
        for store in bench.stores:
            _say(f"round {number}: {NAMES[store]}")
            with plain[store].contender.served() as served:
                for kind in Kind:
                    bench.cost(plain[store], served, kind, number)
                    if number == bench.rounds and not any(lacking):
                        try:
                            _watch(bench, plain[store], served, kind, watched[Column(kind, NAMES[store])])
                        except programs.ProgramError as error:  # perf is there, and can't watch here
                            lacking.append(str(error))
            with sampled[store].contender.served() as served:
                for kind in Kind:
                    prefix = bench.prefix(sampled[store], served, kind)
                    bench.send(served, kind, WARM_UP_S, prefix)
                    began = stacks[store].stat().st_size
                    bench.send(served, kind, SAMPLED_TIMES * bench.seconds, prefix)
                    with stacks[store].open(errors="replace") as file:
                        file.seek(began)
                        found = steps.stacks_in(file.read())
                    seen = watched[Column(kind, NAMES[store])]
                    seen.steps.update(steps.counted(found))
                    seen.unnamed.update(f"{each.file} {each.function}" for each in steps.unnamed(found).elements())
    for column, seen in watched.items():
        print(f"{column.head}: not named: {seen.unnamed.most_common(8)}")
    return _profile_lines(bench, watched, [text for text in lacking if text])


def _watch(bench: Bench, service: Service, served: Served, kind: Kind, seen: Watched) -> None:
    """Looks at the programs and the system calls of one kind of request; both slow the service down."""
    assert served.pid is not None
    core, prefix = bench.setting.cores.load, bench.prefix(service, served, kind)
    recorded = bench.setting.folder / f"{service.store}-{kind.value}.perf"
    with meters.programs_sampled(served.pid, recorded, core):
        bench.send(served, kind, bench.seconds, prefix)
    seen.programs.update(meters.program_shares(recorded))
    traced = recorded.with_suffix(".trace")
    with meters.calls_traced(served.pid, traced, core):
        seen.calls_requests = bench.send(served, kind, bench.seconds, prefix).requests
    seen.calls.update(meters.calls_in(traced.read_text()))


def _profile_lines(bench: Bench, watched: dict[Column, Watched], lacking: list[str]) -> list[str]:
    columns = bench.columns
    threads = {column: _by_thread_us(bench.of(column)) for column in columns}
    in_steps = {column: _parts_us(watched[column].steps, threads[column][meters.LOOP]) for column in columns}
    in_programs = {column: _parts_us(watched[column].programs, sum(threads[column].values())) for column in columns}
    samples = [sum(watched[column].steps.values()) for column in columns]
    body = [["**all**", *(f"**{sum(threads[column].values()):,.0f}**" for column in columns)]]
    body.append(["lowest and highest round", *(_range(bench.of(column)) for column in columns)])
    body.append(
        ["times nginx's", *(f"{sum(threads[each].values()) / bench.nginx_us(each.kind):.1f} x" for each in columns)]
    )
    body += _rows(meters.THREADS, [threads[column] for column in columns], SHOWN_US, bold=True)
    lines = [
        f"Each kind of request came for {bench.rounds} times {bench.seconds} s over {CONNECTIONS} connections.",
        f"The event loop's thread was sampled {min(samples):,} to {max(samples):,} times for each kind.",
        "",
        "**By thread**, in µs of processor time of one request:",
        "",
        *_table(["of a request", *(column.head for column in columns)], body),
        "",
        "**The event loop's thread by step**, in µs; the rows add up to its row above:",
        "",
        *_table(
            ["step", *(column.head for column in columns)],
            _rows(_step_names(in_steps), [in_steps[column] for column in columns], SHOWN_US),
        ),
    ]
    lines += [line for text in lacking for line in ("", f"Not measured by program or by system call: {text}.")]
    if all(watched[column].programs for column in columns):
        names = [*(kind for kind, _ in meters.KINDS_OF_PROGRAM), meters.OTHER_PROGRAM]
        body = list(_rows(names, [in_programs[column] for column in columns], SHOWN_US))
        head = ["program", *(column.head for column in columns)]
        lines += ["", "**By program**, all threads, in µs:", "", *_table(head, body)]
    if all(watched[column].calls for column in columns):
        lines += ["", "**System calls** of one request:", "", *_calls_table(watched)]
    return lines


def _calls_table(watched: dict[Column, Watched]) -> list[str]:
    found = [{name: count / each.calls_requests for name, count in each.calls.items()} for each in watched.values()]
    names = {name for each in found for name in each}
    most_first = sorted(names, key=lambda name: (-max(each.get(name, 0.0) for each in found), name))
    body = [["all", *(f"{sum(each.values()):.1f}" for each in found)], *_rows(most_first, found, SHOWN_CALLS)]
    return _table(["call", *(column.head for column in watched)], body)


def _step_names(in_steps: dict[Column, dict[str, float]]) -> list[str]:
    """Gives all steps that were seen, in the table's order; those of SQLite together."""
    found = {name for each in in_steps.values() for name in each}

    def place(name: str) -> tuple[int, str]:
        return steps.ORDER.index(steps.SQLITE if name.startswith(steps.SQLITE) else name), name

    return sorted(found, key=place)


def promises(bench: Bench, names: list[str]) -> list[str]:
    """Measures what each promise costs; gives the lines of the section."""
    wanted = [name for name in PROMISES if name in names]
    variants = {WHOLE: ""} | {name: name for name in wanted} | {ALL: ",".join(wanted)}
    services = {
        (store, name): bench.service(store, "--without", left_out)
        for store in bench.stores
        for name, left_out in variants.items()
    }
    for number in range(1, bench.rounds + 1):
        bench.nginx(number)
        for (store, name), service in services.items():
            _say(f"round {number}: {NAMES[store]} without {name}")
            with service.contender.served() as served:
                for kind in PROMISES[name][1] if name in PROMISES else tuple(Kind):
                    bench.cost(service, served, kind, number, name)
    columns = bench.columns
    body = [[PROMISES[name][0], *(_cost(bench, column, name) for column in columns)] for name in wanted]
    body.append(["all of these together", *(_cost(bench, column, ALL) for column in columns)])
    body += [
        [f"**{head}**", *(f"**{_times_nginx(bench, column, name):.1f} x**" for column in columns)]
        for head, name in (("the whole service, times nginx's", WHOLE), ("without all of these, times nginx's", ALL))
    ]
    body.append(["the floor", *(f"{_floor(column):g} x" for column in columns)])
    return [
        f"{bench.rounds} rounds; in each, every service for {bench.seconds} s per kind of request.",
        "",
        *_table(["µs of processor time, and times nginx's", *(column.head for column in columns)], body),
    ]


def doors_measured(bench: Bench) -> list[str]:
    """Measures servers that do nothing behind their doors; gives the lines of the section."""
    for number in range(1, bench.rounds + 1):
        bench.nginx(number)
        for name in DOORS:
            _say(f"round {number}: {name}")
            program = [sys.executable, str(HERE / "doors.py"), name, programs.HOST]
            with relay_served(bench.setting, name, program) as served:
                bench.whole(served, Column(Kind.REPLAY, name), number)
    body = []
    for name, words in DOORS.items():
        column = Column(Kind.REPLAY, name)
        mean_us = _mean_us(bench.of(column))
        times = f"{mean_us / bench.nginx_us(Kind.REPLAY):.1f} x"
        body.append([words, f"{mean_us:.1f}", _range(bench.of(column)), times])
    return [
        f"{bench.rounds} rounds; in each, every door for {bench.seconds} s over {CONNECTIONS} connections.",
        "",
        *_table(["door", "µs of processor time", "lowest and highest round", "times nginx's charge"], body),
    ]


def _cost(bench: Bench, column: Column, name: str) -> str:
    """Writes what a request takes less without something: the median of the rounds, their range, the multiple."""
    whole = {each.round_number: each.us for each in bench.of(column)}
    saved = sorted(whole[each.round_number] - each.us for each in bench.of(column, name) if each.round_number in whole)
    if not saved:
        return "-"
    middle = statistics.median(saved)
    return f"{middle:.0f} ({saved[0]:.0f} to {saved[-1]:.0f}), {middle / bench.nginx_us(column.kind):.1f} x"


def _times_nginx(bench: Bench, column: Column, name: str) -> float:
    return _mean_us(bench.of(column, name)) / bench.nginx_us(column.kind)


def _floor(column: Column) -> float:
    """Gives the project's floor for the processor time of a request, in multiples of nginx's."""
    [floor] = [
        aim.floor
        for aim in aims.AIMS
        if (aim.kind, aim.contender) == (column.kind, column.contender) and aim.is_ceiling and aim.form is aims.times
    ]
    assert floor is not None
    return floor


def _by_thread_us(measured: list[Measured]) -> dict[str, float]:
    requests = sum(each.requests for each in measured)
    return {name: sum(each.cpu_ns.get(name, 0) for each in measured) / requests / 1e3 for name in meters.THREADS}


def _mean_us(measured: list[Measured]) -> float:
    return sum(sum(each.cpu_ns.values()) for each in measured) / sum(each.requests for each in measured) / 1e3


def _range(measured: list[Measured]) -> str:
    found = [each.us for each in measured]
    return f"{min(found):,.0f} to {max(found):,.0f}"


def _parts_us(samples: Counter[str], whole_us: float) -> dict[str, float]:
    """Divides a time as samples are divided; gives nothing where there are none."""
    total = sum(samples.values())
    return {name: whole_us * count / total for name, count in samples.items()}


def _rows(
    names: tuple[str, ...] | list[str], found: list[dict[str, float]], least: float, *, bold: bool = False
) -> Iterator[list[str]]:
    """Gives a row for each name that reaches so much anywhere."""
    for name in names:
        values = [each.get(name, 0.0) for each in found]
        if max(values) >= least:
            yield [f"**{name}**" if bold else name, *(f"{value:.1f}" for value in values)]


def _table(head: list[str], body: list[list[str]] | Iterator[list[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *body)]


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
