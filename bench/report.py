"""Writes a run down for people, as Markdown: for the terminal and for the docs."""

import msgspec

import aims
import results
from contenders import POSTGRESQL, SQLITE, Kind
from results import Row, Run, Spread


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table, ready to be drawn; the first ``names`` columns are words, the others figures."""

    title: str
    head: list[str]
    body: list[list[str]]
    names: int = 2


def markdown(run: Run) -> str:
    """Gives all tables of a run, with what it was measured on, and what was wrong."""
    problems = "\n".join(f"- {line}" for line in _problems(run))
    parts = [_circumstances(run), *map(_markdown_table, _tables(run)), problems]
    return "\n\n".join(part for part in parts if part)


def _circumstances(run: Run) -> str:
    machine, plan = run.machine, run.plan
    foreign = results.foreign_share(run)
    others = f"Other work took {_spread(foreign, aims.percent)} of both cores while it ran." if foreign else ""
    lines = [
        f"Measured {run.started_at} with `{run.command}` at commit {machine.commit}.",
        f"{plan.rounds} rounds; in each, every contender for {plan.load_s} s per kind of request with",
        f"{plan.connections} connections and for {plan.latency_s} s with one, after {plan.warm_up_s} s to warm up.",
        "",
        f"- Machine: {machine.processor}, {machine.cores} cores, {machine.memory_gb} GB, Linux {machine.kernel},",
        f"  {machine.file_system}. Load average at the start: {machine.load_average:.2f}. {others}",
        f"- Programs: {', '.join(machine.programs)}.",
        f"- Packages: {', '.join(machine.packages)}.",
    ]
    return "\n".join(lines)


def _markdown_table(table: Table) -> str:
    rule = ["---" if number < table.names else "---:" for number in range(len(table.head))]
    lines = [table.head, rule, *table.body]
    return f"### {table.title}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _tables(run: Run) -> list[Table]:
    rows = results.rows(run)
    return [_throughput(run, rows), _latency(run, rows), _memory(rows), _aims(rows)]


def _throughput(run: Run, rows: list[Row]) -> Table:
    head = ["request", "server", "requests/s", "of nginx", "x usual relay", "CPU µs/request"]
    head += ["database's", "CPU x nginx", "core busy"]
    body = [
        [
            row.kind.value + (" INVALID" if row.problems else ""),
            row.contender,
            _spread(row.rate, _count),
            _spread(row.of_nginx, aims.percent),
            _spread(row.of_usual, aims.times),
            _spread(row.cpu_us, _count),
            _spread(row.database_cpu_us, _count),
            _middle(row.cpu_of_nginx, aims.times),
            _middle(row.core_share, aims.percent),
        ]
        for row in rows
        if row.rate is not None
    ]
    title = f"Throughput, {run.plan.connections} connections, one core: median (lowest to highest)"
    return Table(title=title, head=head, body=body)


def _latency(run: Run, rows: list[Row]) -> Table:
    head = ["request", "server", f"p50, {run.plan.connections} connections", "p99", "p50, one connection", "added"]
    head += ["one sync of the disk", "beside two syncs"]
    body = [
        [
            row.kind.value,
            row.contender,
            _spread(row.p50_ms, _hundredths),
            _spread(row.p99_ms, _hundredths),
            _spread(row.alone_ms, _hundredths),
            _spread(row.added_ms, _hundredths),
            _spread(row.sync_ms, _hundredths),
            _spread(row.beside_syncs_ms, _hundredths),
        ]
        for row in rows
    ]
    return Table(title="Latency in ms: median (lowest to highest)", head=head, body=body)


def _memory(rows: list[Row]) -> Table:
    body = [
        [
            row.contender,
            _spread(row.pss_mb, _count),
            _spread(row.rss_mb, _count),
            _spread(row.database_pss_mb, _count),
        ]
        for row in rows
        if row.kind is Kind.CHARGE and row.rate is not None
    ]
    head = ["server", "PSS", "RSS", "database's PSS"]
    return Table(title="Memory in MB of the whole process tree after charges under load", head=head, body=body, names=1)


def _aims(rows: list[Row]) -> Table:
    body = [
        [result.aim, result.contender, result.found, result.verdict.value]
        for result in aims.results(rows, [SQLITE, POSTGRESQL])
    ]
    return Table(title="The project's aims", head=["aim", "server", "found", "verdict"], body=body, names=2)


def _problems(run: Run) -> list[str]:
    foreign = results.foreign_share(run)
    found = []
    if foreign and foreign.high > results.CALM_SHARE:
        found.append(
            f"The machine was not quiet: other work took {_spread(foreign, aims.percent)} of both cores. "
            "Processor time per request is then a little too high; requests per second and latency don't count."
        )
    found += [f"Not measured: {line}" for line in run.absent]
    found += [f"INVALID: {row.contender}, {row.kind}: {text}" for row in results.rows(run) for text in row.problems]
    return found


def _spread(value: Spread | None, form: aims.Form) -> str:
    if value is None or value.high == 0:
        return "-"
    return f"{form(value.middle)} ({form(value.low)} to {form(value.high)})"


def _middle(value: Spread | None, form: aims.Form) -> str:
    return "-" if value is None else form(value.middle)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _hundredths(value: float) -> str:
    return f"{value:.2f}"
