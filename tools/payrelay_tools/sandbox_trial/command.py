"""The trial of a gateway's sandbox, as an operator runs it: the report in its file, and what the terminal shows."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from pydantic import BaseModel

from payrelay.cli.terminal.messages import DONE, FAULTY, REFUSED, UNCOVERED, CommandError
from payrelay.clock import Clock
from payrelay.core.moments import rfc3339
from payrelay.errors import SettingsError
from payrelay.gateways.gateway_kind import CommonSettings
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.kind import account_of
from payrelay.settings import Settings
from payrelay_tools.sandbox_trial.desk import Desk, served, typed_lines
from payrelay_tools.sandbox_trial.payhere.trial import PayHereTrial
from payrelay_tools.sandbox_trial.trial import Finding, SandboxTrial, TrialVerdict

TRIALS: Final[Mapping[str, Callable[[CommonSettings, BaseModel, Clock, float], SandboxTrial]]] = MappingProxyType(
    {PAYHERE: lambda common, own, clock, pace: PayHereTrial(account_of(common, own), clock, pace=pace)}
)
"""What makes the trial of an account, for the kinds of gateways that have one. The number multiplies the pauses between
its calls."""
SHOWN_MAX: Final = 150
"""Characters of what was seen that the terminal shows; the report has all."""
MARKS: Final = {
    TrialVerdict.AS_KNOWN: ("✓", "green"),
    TrialVerdict.DIFFERS: ("✗", "red"),
    TrialVerdict.LEARNT: ("i", "cyan"),
    TrialVerdict.NOT_TRIED: ("-", "yellow"),
}


class TrialOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator chose. ``pace`` multiplies the pauses and the waits for notifications; a test takes less."""

    account: str
    report: Path
    host: str
    port: int
    wait_s: float
    pace: float = 1.0


class TrialReport(msgspec.Struct, kw_only=True):
    """A trial's report. It has no secret and no personal data."""

    about: str = "What a sandbox trial of Payrelay found; it has neither secrets nor personal data."
    version: str
    begun_at: str
    environment: str
    findings: list[Finding] = []

    def add(self, finding: Finding) -> None:
        """Adds a finding, or replaces an earlier one of its step."""
        self.findings = [*(each for each in self.findings if each.step != finding.step), finding]


class _Book:
    """The files of a trial: the report, and beside it what later steps need of earlier ones, which is secret."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._kept_path = path.with_name(f"{path.name}.secret")
        version = metadata.version("payrelay")
        self.report = TrialReport(version=version, begun_at=rfc3339(clock.now_ms()), environment="sandbox")
        self.kept: dict[str, str] = {}
        if path.exists() and self._kept_path.exists():
            self.report = msgspec.json.decode(path.read_bytes(), type=TrialReport)
            self.kept = msgspec.json.decode(self._kept_path.read_bytes(), type=dict[str, str])
        elif path.exists():
            raise CommandError(f"{path} is the report of a trial that is over: name another file by --report", REFUSED)

    @property
    def done(self) -> set[str]:
        """The steps that need no second attempt."""
        return {each.step for each in self.report.findings if each.verdict is not TrialVerdict.NOT_TRIED}

    def note(self, finding: Finding) -> None:
        """Writes a finding at once, so that nothing is lost where the trial is broken off."""
        self.report.add(finding)
        self.save()

    def save(self) -> None:
        """Writes both files, each as a whole."""
        _write(self._kept_path, msgspec.json.encode(self.kept))
        _write(self._path, msgspec.json.format(msgspec.json.encode(self.report), indent=2))

    def close(self) -> None:
        """Removes what is secret, once nothing is left to be gone on with."""
        self._kept_path.unlink(missing_ok=True)


async def try_sandbox(
    settings: Settings,
    options: TrialOptions,
    say: Callable[[str, str], None],
    lines: asyncio.Queue[str] | None = None,
) -> int:
    """Runs a trial, or goes on with one; returns the exit code.

    ``say`` writes a line in a colour. ``lines`` are what the person types; None for standard input.

    Raises CommandError for an account that is live, before anything is sent; SettingsError.
    """
    clock = Clock()
    async with _opened(settings, options.account, clock, options.pace) as trial, typed_lines() as typed:
        if trial.refusal is not None:
            raise CommandError(f"{trial.refusal}; nothing was sent", REFUSED)
        book = _Book(options.report, clock)
        public_url = settings.public_url or f"http://localhost:{options.port}"
        desk = Desk(public_url, options.wait_s, lambda line: say(line, ""), lines or typed, pace=options.pace)

        def note(finding: Finding) -> None:
            book.note(finding)
            for line, colour in _lines(finding):
                say(line, colour)

        async with served(desk, options.host, options.port):
            for line in _introduction(public_url, options, len(trial.step_names), len(book.done)):
                say(line, "")
            try:
                await trial.run(desk, done=book.done, kept=book.kept, note=note)
            finally:
                book.save()
        missing = [name for name in trial.step_names if name not in book.done]
        if not missing:
            book.close()
        for line in _summary(book.report, options.report, missing):
            say(line, "")
        differs = any(each.verdict is TrialVerdict.DIFFERS for each in book.report.findings)
        return FAULTY if differs else UNCOVERED if missing else DONE


@asynccontextmanager
async def _opened(settings: Settings, name: str, clock: Clock, pace: float) -> AsyncIterator[SandboxTrial]:
    """Opens the trial of an account, which has sent nothing yet. Raises SettingsError."""
    gateway = settings.gateways.get(name)
    if gateway is None:
        raise SettingsError(f"no gateway account is called {name}")
    if gateway.kind not in TRIALS:
        raise SettingsError(f"there is no trial for gateways of the kind {gateway.kind}")
    trial = TRIALS[gateway.kind](gateway.common(name), gateway, clock, pace)
    try:
        yield trial
    finally:
        await trial.close()


def _introduction(public_url: str, options: TrialOptions, total: int, done: int) -> list[str]:
    lines = [
        f"Trial of the account {options.account}: {total} steps" + (f", {done} of them done before." if done else "."),
        f"This command answers at {public_url}, by {options.host}:{options.port}, in place of the service.",
        f"The report is {options.report}. Ctrl-C breaks the trial off; the same command goes on with it.",
    ]
    if public_url.startswith("http://localhost"):
        lines.append("PAYRELAY_PUBLIC_URL is not set: the gateway can't send a notification to this machine.")
    return lines


def _lines(finding: Finding) -> list[tuple[str, str]]:
    mark, colour = MARKS[finding.verdict]
    is_guess = finding.verdict is TrialVerdict.AS_KNOWN and finding.known == "guessed"
    lines = [(f"{mark} {finding.step}: {'as guessed' if is_guess else finding.verdict}", colour)]
    lines += [(f"    {each}", "") for each in finding.differences]
    if finding.verdict in {TrialVerdict.NOT_TRIED, TrialVerdict.LEARNT}:
        text = finding.seen if isinstance(finding.seen, str) else msgspec.json.encode(finding.seen).decode()
        lines.append((f"    {text[:SHOWN_MAX]}{'…' if len(text) > SHOWN_MAX else ''}", "dim"))
    return lines


def _summary(report: TrialReport, path: Path, missing: list[str]) -> list[str]:
    counts = [(each, sum(finding.verdict is each for finding in report.findings)) for each in TrialVerdict]
    lines = ["", f"Begun {report.begun_at}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts) + "."]
    lines.append(f"{path} has no secret and no personal data. Please send it to the maintainers.")
    if missing:
        lines.append(f"Not tried yet: {', '.join(missing)}. The same command tries them; keep {path}.secret for it.")
    return lines


def _write(path: Path, content: bytes) -> None:
    """Writes a file as a whole, readable by its owner only."""
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)
