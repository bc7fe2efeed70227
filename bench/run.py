"""Measures Payrelay beside nginx and the relay that most people would write, in one run.

Everything stays on the loopback and in a folder that goes away. It exits with 1 when a row doesn't count (an answer was
wrong, a call was missing at the gateway) or a contender didn't start. An aim that is missed is reported and no error.
"""

import argparse
import contextlib
import datetime as dt
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

import load
import machine
import measure
import postgresql
import programs
import report
import results
import section
import upstream
from contenders import BY_NAME, Contender, Kind, Served, Setting
from results import Plan, Run

RAW_FOLDER = Path(__file__).parent.parent / "build" / "bench"

TRIES_MAX = 2
"""A measurement that something else on the machine disturbed is made once more, and the calmer one counts."""

FULL = Plan(rounds=4, load_s=5, latency_s=2, warm_up_s=1, connections=64)
QUICK = Plan(rounds=1, load_s=1, latency_s=1, warm_up_s=1, connections=64)


class Arguments(argparse.Namespace):
    """What can be said on the command line."""

    quick: bool
    rounds: int | None
    only: str
    keep_docs: bool


def main() -> int:
    """Runs what the command line says."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _measure(arguments)
    except programs.ProgramError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    text = report.markdown(run)
    print(text)
    foreign = results.foreign_share(run)
    if foreign and not arguments.quick and not arguments.keep_docs:
        section.put("results", text, foreign.middle, program="run")
    return 1 if run.absent or any(sample.problems for sample in run.samples) else 0


def _parse() -> Arguments:
    parser = argparse.ArgumentParser(description="Measure Payrelay beside nginx and the usual relay.")
    parser.add_argument("--quick", action="store_true", help="a smoke of a minute: one short round; leaves docs/ alone")
    parser.add_argument("--rounds", type=int, help=f"how many rounds ({FULL.rounds})")
    parser.add_argument("--only", default=",".join(BY_NAME), help=f"who, by comma (all: {', '.join(BY_NAME)})")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    return parser.parse_args(namespace=Arguments())


def _measure(arguments: Arguments) -> Run:
    plan = QUICK if arguments.quick else FULL
    if arguments.rounds:
        plan = msgspec.structs.replace(plan, rounds=arguments.rounds)
    started_at = dt.datetime.now(dt.UTC)
    with stage() as setting:
        field, absent = _field(setting, arguments.only.split(","))
        facts = machine.describe(setting.folder, postgresql.version())
        samples = _Bench(setting, plan).all_rounds(field, absent)
    run = Run(
        started_at=f"{started_at:%Y-%m-%d %H:%M} UTC",
        command=" ".join(["python", "bench/run.py", *sys.argv[1:]]),
        plan=plan,
        machine=facts,
        samples=samples,
        absent=absent,
    )
    RAW_FOLDER.mkdir(parents=True, exist_ok=True)
    raw = RAW_FOLDER / f"{started_at:%Y%m%d-%H%M%S}.json"
    raw.write_bytes(msgspec.json.format(msgspec.json.encode(run)))
    print(f"raw results: {raw}", file=sys.stderr)
    return run


@contextlib.contextmanager
def stage() -> Iterator[Setting]:
    """Gives a folder on a real disk with the gateway running in it."""
    # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
    with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)  # the database and nginx's worker run as users of their own when the bench is root
        cores = programs.cores()
        with upstream.running(folder, cores.load) as gateway:
            yield Setting(folder=folder, cores=cores, gateway=gateway)


def _field(setting: Setting, names: list[str]) -> tuple[list[Contender], list[str]]:
    """Gives who can be measured, and why the others can't."""
    unknown = sorted(set(names) - set(BY_NAME))
    if unknown:
        raise programs.ProgramError(f"there is no contender called {', '.join(unknown)}")
    field: list[Contender] = []
    absent = []
    for name in BY_NAME:
        if name not in names:
            continue
        try:
            field.append(BY_NAME[name](setting))
        except programs.ProgramError as error:
            absent.append(f"{name}: {error}")
    return field, absent


class _Bench:
    """The rounds: each starts every contender alone, warms it up and measures it, in turn."""

    def __init__(self, setting: Setting, plan: Plan) -> None:
        self._setting = setting
        self._plan = plan
        self._samples: list[measure.Sample] = []
        self._prepared: dict[str, str] = {}

    def all_rounds(self, field: list[Contender], absent: list[str]) -> list[measure.Sample]:
        """Measures everybody in every round; who doesn't start goes to the absent and is not tried again."""
        for round_number in range(1, self._plan.rounds + 1):
            for contender in list(field):
                try:
                    self._one(contender, round_number)
                except programs.ProgramError as error:
                    absent.append(f"{contender.name}: {error}")
                    field.remove(contender)
        return self._samples

    def _one(self, contender: Contender, round_number: int) -> None:
        with contender.served() as served:
            for kind in contender.kinds:
                print(f"round {round_number} of {self._plan.rounds}: {contender.name}, {kind.value}", file=sys.stderr)
                if kind is Kind.REPLAY:
                    self._prepare(contender, served)
                self._sample(contender, served, kind, round_number)

    def _prepare(self, contender: Contender, served: Served) -> None:
        """Makes the charges that are replayed, once: the database is the same in all rounds."""
        if contender.name not in self._prepared:
            prefix = load.new_replay_prefix()
            load.prepare_replay(served, prefix)
            self._prepared[contender.name] = prefix

    def _sample(self, contender: Contender, served: Served, kind: Kind, round_number: int) -> None:
        prefix = self._prepared.get(contender.name, "")
        plan, cores = self._plan, self._setting.cores
        many = load.Load(kind=kind, connections=plan.connections, duration_s=plan.load_s)
        one = load.Load(kind=kind, connections=1, duration_s=plan.latency_s)
        warm = msgspec.structs.replace(many, duration_s=plan.warm_up_s)
        load.send(served, warm, cores.load, prefix)
        for sending in (many, one) if contender.is_loaded else (one,):
            case = measure.Case(contender=contender.name, round_number=round_number, load=sending, replay_prefix=prefix)
            self._samples.append(self._calmest(served, case))

    def _calmest(self, served: Served, case: measure.Case) -> measure.Sample:
        """Measures, again where it was disturbed; a wrong answer counts whenever it came."""
        tries: list[measure.Sample] = []
        while len(tries) < TRIES_MAX:
            tries.append(
                measure.measure(served, self._setting.gateway, self._setting.cores, case, self._setting.folder)
            )
            # Counts may disagree because something starved a process; a wrong answer has no such excuse.
            if tries[-1].sent.wrong or tries[-1].foreign_share <= results.CALM_SHARE:
                return tries[-1]
        return min(tries, key=lambda sample: (bool(sample.problems), sample.foreign_share))


if __name__ == "__main__":
    sys.exit(main())
