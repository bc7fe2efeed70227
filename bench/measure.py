"""Measures one contender under one load: wrk's view, the server's processor time and memory, the gateway's counts."""

import os
import resource
import time
from pathlib import Path

import msgspec
import psutil

import disk
import load
import programs
from contenders import Kind, Served
from upstream import Counts, Gateway

MEGABYTE = 1_000_000
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement, raw.

    Attributes:
        contender: who was measured.
        kind: what was asked for.
        round_number: in which round, from 1.
        connections: how many at once.
        sent: what wrk saw.
        cpu_s: user and system time of the server's process tree.
        database_cpu_s: the same of its database's; 0 where it has none.
        pss_mb: proportional set size of the server's tree after the load.
        rss_mb: resident set size of the server's tree after the load.
        database_pss_mb: proportional set size of its database's tree.
        foreign_share: what anybody else on the machine took of both cores, 0 to 1.
        sync_us: what one sync of the disk took just before and after a charge with one connection; else 0.
        problems: why this measurement doesn't count; empty when it does.
    """

    contender: str
    kind: Kind
    round_number: int
    connections: int
    sent: load.Sent
    cpu_s: float
    database_cpu_s: float
    pss_mb: float
    rss_mb: float
    database_pss_mb: float
    foreign_share: float
    sync_us: float = 0.0
    problems: list[str]

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.sent.requests / (self.sent.duration_us / 1e6)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to measure, and how.

    Attributes:
        contender: who.
        round_number: in which round.
        load: what to send.
        replay_prefix: where the prepared orders begin.
    """

    contender: str
    round_number: int
    load: load.Load
    replay_prefix: str


class Clocks(msgspec.Struct, frozen=True):
    """All processor times at one moment, in seconds."""

    wall_s: float
    machine_s: float
    server_s: float
    database_s: float
    gateway_s: float
    load_s: float


def measure(served: Served, gateway: Gateway, cores: programs.Cores, case: Case, folder: Path) -> Sample:
    """Sends the load and reads every meter before and after it; ``folder`` is on the disk of the databases."""
    waits_for_disk = case.load.kind is Kind.CHARGE and case.load.connections == 1
    sync_before_us = disk.sync_us(folder) if waits_for_disk else 0.0
    counts_before = gateway.counts_at_rest()
    before = clocks(served, gateway)
    sent = load.send(served, case.load, cores.load, case.replay_prefix)
    after = clocks(served, gateway)
    counts_after = gateway.counts_at_rest()
    asked = Counts(counts_after.charges - counts_before.charges, counts_after.reads - counts_before.reads)
    pss_mb, rss_mb = memory_mb(served.pid)
    return Sample(
        contender=case.contender,
        kind=case.load.kind,
        round_number=case.round_number,
        connections=case.load.connections,
        sent=sent,
        cpu_s=after.server_s - before.server_s,
        database_cpu_s=after.database_s - before.database_s,
        pss_mb=pss_mb,
        rss_mb=rss_mb,
        database_pss_mb=memory_mb(served.database_pid)[0],
        foreign_share=foreign_share(before, after),
        sync_us=(sync_before_us + disk.sync_us(folder)) / 2 if waits_for_disk else 0.0,
        problems=_problems(case.load, sent, asked),
    )


def _problems(sending: load.Load, sent: load.Sent, asked: Counts) -> list[str]:
    """Says why a measurement doesn't count."""
    found = []
    if sent.requests == 0:
        found.append("no answers")
    if sent.wrong:
        found.append(f"{sent.wrong} of {sent.requests} answers wrong ({sent.complaint})")
    if sent.broken or sent.timeouts:
        found.append(f"{sent.broken} connections broken, {sent.timeouts} answers too late")
    if sending.kind is Kind.REPLAY:
        if asked.charges or asked.reads:
            found.append(f"{asked.charges} replays reached the gateway")
        return found
    # What was under way when wrk stopped reached the gateway without being counted as answered.
    at_gateway = asked.reads if sending.kind is Kind.READ else asked.charges
    if not 0 <= at_gateway - sent.requests <= sending.connections:
        found.append(f"{sent.requests} answers, but {at_gateway} calls at the gateway")
    return found


def clocks(served: Served, gateway: Gateway) -> Clocks:
    """Reads them; what this process and its children take is the load's."""
    children, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    return Clocks(
        wall_s=time.monotonic(),
        machine_s=machine_busy_s(),
        server_s=tree_cpu_s(served.pid),
        database_s=tree_cpu_s(served.database_pid),
        gateway_s=tree_cpu_s(gateway.pid),
        load_s=children.ru_utime + children.ru_stime + own.ru_utime + own.ru_stime,
    )


def foreign_share(before: Clocks, after: Clocks) -> float:
    """Gives the share of two cores that was spent on nothing of ours."""
    ours = sum(
        getattr(after, name) - getattr(before, name) for name in ("server_s", "database_s", "gateway_s", "load_s")
    )
    busy = after.machine_s - before.machine_s
    return float(max(0.0, busy - ours) / (2 * (after.wall_s - before.wall_s)))


def machine_busy_s() -> float:
    """Gives the time that all cores have been busy, time taken by the host included."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_S


def _tree(pid: int | None) -> list[psutil.Process]:
    if pid is None:
        return []
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def tree_cpu_s(pid: int | None) -> float:
    """Gives user and system time of a process tree, children that have ended included."""
    total = 0.0
    for process in _tree(pid):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue  # it ended between the two looks; its parent has its time
    return total


def memory_mb(pid: int | None) -> tuple[float, float]:
    """Gives proportional and resident set size of a process tree."""
    pss = rss = 0
    for process in _tree(pid):
        try:
            memory = process.memory_full_info()
        except psutil.NoSuchProcess:
            continue
        pss += memory.pss
        rss += memory.rss
    return pss / MEGABYTE, rss / MEGABYTE
