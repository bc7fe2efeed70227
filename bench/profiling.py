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
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

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
from costs import (
    ALL,
    DOORS,
    PROMISES,
    WHOLE,
    Column,
    Costs,
    Measured,
    Watched,
    door_lines,
    profile_lines,
    promise_lines,
)
from results import CALM_SHARE

HERE: Final = Path(__file__).parent
PARTS: Final = ("profile", "promises", "doors")
NAMES: Final = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
CONNECTIONS: Final = 64
ROUNDS_MIN: Final = 3
"""Of what the docs tell."""
WARM_UP_S: Final = 1
REST_S: Final = 0.3
"""After it a service waits for requests again, and each of its threads for what it usually waits for."""
SAMPLED_STARTS_MAX: Final = 5
"""Starts of a service whose stacks are written, for one kind of load."""
SAMPLED_TIMES: Final = 3
"""The load under which stacks are sampled lasts so many times as long: what is seldom needs many samples."""


class Arguments(argparse.Namespace):
    """What can be said on the command line."""

    only: list[str]
    rounds: int
    seconds: int
    stores: list[str]
    without: list[str]
    keep_docs: bool


def main() -> int:
    """Measures, prints, and writes its sections of the docs."""
    arguments = _parse()
    has_failed = False
    for part in arguments.only:
        try:
            with run.stage() as setting:
                bench = Bench(setting, arguments)
                if part == "profile":
                    lines = profile(bench)
                elif part == "promises":
                    lines = promises(bench, arguments.without)
                else:
                    lines = doors(bench)
                _end(part, bench, lines, arguments)
        except programs.ProgramError as error:
            print(f"bench: {part}: {error}", file=sys.stderr)
            has_failed = True
    return 1 if has_failed else 0


def _parse() -> Arguments:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    _add_names(parser, "--only", PARTS, "which parts")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds")
    parser.add_argument("--seconds", type=int, default=3, help="how long each load lasts")
    _add_names(parser, "--stores", NAMES, "which databases")
    _add_names(parser, "--without", PROMISES, "which promises are left out in turn")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    return parser.parse_args(namespace=Arguments())


def _add_names(parser: argparse.ArgumentParser, option: str, known: Iterable[str], words: str) -> None:
    """Adds an option that takes some of these names, by comma; all of them where it isn't given."""
    usual = ",".join(known)

    def names(given: str) -> list[str]:
        unknown = set(given.split(",")) - set(usual.split(","))
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}")
        return given.split(",")

    parser.add_argument(option, type=names, default=names(usual), help=f"{words}, by comma ({usual})")


def _end(part: str, bench: "Bench", lines: list[str], arguments: Arguments) -> None:
    """Keeps the raw figures, and writes the tables down where they count."""
    foreign = statistics.median(each.foreign_share for each in bench.measured)
    told = f"{bench.rounds} rounds; in each, every load lasted {bench.seconds} s over {CONNECTIONS} connections."
    others = f"Other work took {foreign * 100:.1f} % of both cores, at the median."
    lines = [f"{told} {others}", *lines]
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
    elif bench.rounds < ROUNDS_MIN:
        print(f"docs/ is left as it was: {ROUNDS_MIN} rounds show how far they differ, and fewer don't")
    else:
        section.write(part, lines, program="profiling")


class Bench:
    """Starts services, loads them and keeps what they cost."""

    def __init__(self, setting: Setting, arguments: Arguments) -> None:
        self.setting = setting
        self.stores = [name for name in NAMES if name in arguments.stores]
        self.rounds = arguments.rounds
        self.seconds = arguments.seconds
        self.measured: list[Measured] = []
        self._folders = 0
        self._cluster: postgresql.Cluster | None = None

    @property
    def costs(self) -> Costs:
        """What all of it cost."""
        return Costs(self.measured)

    @property
    def columns(self) -> list[Column]:
        """All kinds of request, each on all databases."""
        return [Column(kind, NAMES[store]) for kind in Kind for store in self.stores]

    def service(self, store: str, *, without: str = "", is_sampled: bool = False) -> "Service":
        """Makes a service with a database of its own, which ``experiment`` starts: without something, or sampled."""
        self._folders += 1
        folder = self.setting.folder / f"service-{self._folders}"
        folder.mkdir()
        stacks = folder / "stacks"
        program = [sys.executable, str(HERE / "experiment.py"), "--without", without]
        program += ["--samples", str(stacks)] if is_sampled else []
        setting = msgspec.structs.replace(self.setting, folder=folder)
        if store == "sqlite":
            return Service(store, PayrelaySqlite(setting, program), stacks)
        if self._cluster is None:
            self._cluster = postgresql.Cluster(self.setting.folder)
        contender = PayrelayPostgresql(setting, program, cluster=self._cluster, database=f"payrelay_{self._folders}")
        return Service(store, contender, stacks)

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
        if sent.wrong:
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


class Service:
    """A service with a database of its own, and the file for its stacks, where it is sampled."""

    def __init__(self, store: str, contender: PayrelaySqlite | PayrelayPostgresql, stacks: Path) -> None:
        self.store = store
        self.stacks = stacks
        self.contender = contender
        self.replay_prefix = ""


def profile(bench: Bench) -> list[str]:
    """Measures where the time goes; gives the lines of the section."""
    plain = {store: bench.service(store) for store in bench.stores}
    sampled = {store: bench.service(store, is_sampled=True) for store in bench.stores}
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
                        lacking.append(_watch(bench, plain[store], served, watched[Column(kind, NAMES[store])], kind))
            for kind in Kind:
                _sampled(bench, sampled[store], watched[Column(kind, NAMES[store])], kind)
    for column, seen in watched.items():
        print(f"{column.head}: not named: {seen.unnamed.most_common(8)}")
    return profile_lines(bench.costs, watched, filter(None, lacking))


def _sampled(bench: Bench, service: Service, seen: Watched, kind: Kind) -> None:
    """Samples a service under one kind of load; starts it again where it died.

    A stack is written whatever the thread is at, also in the middle of a call's beginning. Once in thousands of times
    the interpreter doesn't survive that. Raises ProgramError where it happens too often.
    """
    left = SAMPLED_TIMES
    for tries_left in reversed(range(SAMPLED_STARTS_MAX)):
        try:
            with service.contender.served() as served:
                while left:
                    _sample_stacks(bench, service, served, seen, kind)
                    left -= 1
        except programs.ProgramError:
            if not tries_left:
                raise
        else:
            return


def _sample_stacks(bench: Bench, service: Service, served: Served, seen: Watched, kind: Kind) -> None:
    """Loads a service that writes its stacks to a file, and counts those of this load."""
    path = service.stacks
    prefix = bench.prefix(service, served, kind)
    bench.send(served, kind, WARM_UP_S, prefix)
    began = path.stat().st_size
    bench.send(served, kind, bench.seconds, prefix)
    with path.open(errors="replace") as file:
        file.seek(began)
        found = steps.stacks_in(file.read())
    seen.steps.update(steps.counted(found))
    seen.unnamed.update(f"{each.file} {each.function}" for each in steps.unnamed(found).elements())


def _watch(bench: Bench, service: Service, served: Served, seen: Watched, kind: Kind) -> str:
    """Looks at the programs and the system calls of one kind of request, which slows the service down.

    Says why it couldn't; gives an empty text where it could.
    """
    assert served.pid is not None
    core, prefix = bench.setting.cores.load, bench.prefix(service, served, kind)
    recorded = bench.setting.folder / f"{service.store}-{kind.value}.perf"
    traced = recorded.with_suffix(".trace")
    try:
        with meters.programs_sampled(served.pid, recorded, core):
            bench.send(served, kind, bench.seconds, prefix)
        seen.programs.update(meters.program_shares(recorded))
        with meters.calls_traced(served.pid, traced, core):
            seen.calls_requests = bench.send(served, kind, bench.seconds, prefix).requests
        seen.calls.update(meters.calls_in(traced.read_text()))
    except (programs.ProgramError, subprocess.CalledProcessError, OSError) as error:
        return f"{kind.value}, {NAMES[service.store]}: {error}"
    return ""


def promises(bench: Bench, names: list[str]) -> list[str]:
    """Measures what each promise costs; gives the lines of the section."""
    wanted = [name for name in PROMISES if name in names]
    variants = {WHOLE: ""} | {name: name for name in wanted} | {ALL: ",".join(wanted)}
    for number in range(1, bench.rounds + 1):
        bench.nginx(number)
        for store, name in itertools.product(bench.stores, _in_turns(wanted)):
            _say(f"round {number}: {NAMES[store]} without {name}")
            # On a new database each time: at its next start one without a history counts as one that lost commits.
            service = bench.service(store, without=variants[name])
            with service.contender.served() as served:
                for kind in PROMISES[name][1] if name in PROMISES else tuple(Kind):
                    bench.cost(service, served, kind, number, name)
    return promise_lines(bench.costs, bench.columns, wanted)


def _in_turns(wanted: list[str]) -> list[str]:
    """Puts the whole service before, between and behind the others, so that a slow minute weighs on it as well."""
    half = len(wanted) // 2
    return [WHOLE, *wanted[:half], WHOLE, *wanted[half:], ALL, WHOLE]


def doors(bench: Bench) -> list[str]:
    """Measures servers that do nothing behind their doors; gives the lines of the section."""
    for number in range(1, bench.rounds + 1):
        bench.nginx(number)
        for name in DOORS:
            _say(f"round {number}: {name}")
            program = [sys.executable, str(HERE / "doors.py"), name, programs.HOST]
            with relay_served(bench.setting, name, program) as served:
                bench.whole(served, Column(Kind.REPLAY, name), number)
    return door_lines(bench.costs)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
