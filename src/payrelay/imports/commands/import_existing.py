"""The command that takes over what a shop had before Payrelay."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, session
from payrelay.cli.terminal.declaring import Sure, awaited, examples, group
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    REFUSED,
    UNUSABLE,
    CommandError,
    complain,
    is_confirmed,
    missing_package,
    require_answerable,
    say,
    show,
)
from payrelay.core.payments.imported import ImportVerdict
from payrelay.core.text.csv_text import csv_line
from payrelay.imports.rules.items import ImportUnreadableError

if TYPE_CHECKING:
    from payrelay.flows.relay import Relay
    from payrelay.imports.flows.import_existing import ImportedItem, ImportReport, ImportScope
    from payrelay.imports.flows.sources import ImportSource
    from payrelay.imports.rules.fields import IsMerchant
    from payrelay_tools.laravel.secrets import AppKeys

app = group()

UNDONE: Final = "nothing was imported"
TOLD_MAX: Final = 50
"""Refused lines that are told; the file of --report has all."""
KEY_FILE_BYTES_MAX: Final = 100_000
REPORT_HEAD: Final = ("place", "item", "verdict", "reason", "reference", "customer")


@app.command(
    "import",
    epilog=examples(
        "payrelay import database.sqlite --principal shop --dry-run",
        "payrelay import cards.csv --principal shop --report cards-imported.csv",
        "payrelay import dump.sql --principal shop --app-key-file .env",
    ),
)
@awaited
async def import_all(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A CSV file. With payrelay-tools, laravel-payhere's tables: SQLite file, MySQL dump, postgresql://….",
        ),
    ],
    *,
    principal: Annotated[str, typer.Option(metavar="NAME", help="Who owns what is imported: the name of its keys.")],
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="The gateway account; needed with several accounts.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be imported, and what not.")] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what becomes of each line into a CSV file.")
    ] = None,
    app_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The shop's .env, or its APP_KEY: opens the columns that it encrypted."),
    ] = None,
    yes: Sure = False,
) -> int:
    """Import card tokens, subscriptions and payments from before.

    First tells what would be imported, then asks. Nothing is doubled, however often it is run; an import that was
    interrupted is simply begun again. Nothing is sent to the gateway.
    """
    from payrelay.flows.operators.parts import Actor
    from payrelay.imports.flows.import_existing import ImportScope

    settings = read_settings()
    if not dry_run:
        require_answerable(is_sure=yes, undone=UNDONE)
    actor = Actor(operator_from(None))
    async with session(settings) as relay:
        name = account or (next(iter(relay.accounts)) if len(relay.accounts) == 1 else None)
        if name is None or name not in relay.accounts:
            raise CommandError(f"--account must be one of {', '.join(sorted(relay.accounts))}")
        gateway = relay.account(name)
        read = _opened(source, app_key_file, gateway.is_merchant_number)
        scope = ImportScope(
            account=name,
            merchant=gateway.merchant,
            principal=await _stored_name(relay, principal),
            source=read.name,
            actor=actor,
            is_dry=True,
        )
        with _unreadable(source), _written(report if dry_run else None) as out:
            planned = await _run(relay, scope, read, out, total=None)
        if dry_run:
            return _end(planned, scope)
        for line in _sentences(planned, scope):
            say(line)
        if not yes and not is_confirmed(f"Import this for the principal {scope.principal}?"):
            raise CommandError(UNDONE, REFUSED)
        scope = ImportScope(
            account=name,
            merchant=gateway.merchant,
            principal=scope.principal,
            source=scope.source,
            actor=actor,
        )
        with _unreadable(source), _written(report) as out:
            done = await _run(relay, scope, read, out, total=sum(planned.counts.values()))
        _tell_signing(relay, name)
    return _end(done, scope)


async def _run(
    relay: "Relay", scope: "ImportScope", source: "ImportSource", out: IO[str] | None, *, total: int | None
) -> "ImportReport":
    """Reads the source once, with a bar; tells the refused lines in the dry run alone, which comes first."""
    from rich.console import Console

    from payrelay.cli.terminal.pages import progress_bar
    from payrelay.imports.flows.import_existing import import_existing

    if out is not None:
        out.write(f"{csv_line(REPORT_HEAD)}\r\n")
    refused = 0
    with progress_bar(Console(stderr=True)) as bar:
        task = bar.add_task("looking" if scope.is_dry else "importing", total=total)

        def told(imported: "ImportedItem") -> None:
            nonlocal refused
            bar.advance(task)
            if out is not None:
                out.write(f"{csv_line(_cells(imported))}\r\n")
            if imported.verdict is ImportVerdict.REFUSED and scope.is_dry:
                refused += 1
                if refused <= TOLD_MAX:
                    complain(": ".join(filter(None, (imported.item.place, imported.item.name, imported.reason))))

        done = await import_existing(relay, scope, source.items(), told)
    if refused > TOLD_MAX:
        complain(f"{refused - TOLD_MAX} more lines were refused; --report writes all of them into a file")
    return done


def _cells(imported: "ImportedItem") -> list[str]:
    item = imported.item
    reference = getattr(item, "reference", None) or ""
    return [item.place, item.name, imported.verdict.value, imported.reason, reference, imported.customer_id or ""]


def _end(report: "ImportReport", scope: "ImportScope") -> int:
    for line in _sentences(report, scope):
        show(line)
    return FAULTY if report.of(ImportVerdict.REFUSED) else DONE


def _sentences(report: "ImportReport", scope: "ImportScope") -> Iterator[str]:
    said = {
        ImportVerdict.NEW: f"{'To be imported' if scope.is_dry else 'Imported'} for {scope.principal}",
        ImportVerdict.CHANGED: "Here already, and given back since",
        ImportVerdict.KNOWN: "Here already",
        ImportVerdict.PASSED_OVER: "Passed over, as nothing to be imported",
        ImportVerdict.REFUSED: "Refused",
    }
    for verdict, words in said.items():
        counted = [f"{number} {kind if number != 1 else kind[:-1]}" for kind, number in report.of(verdict).items()]
        if counted:
            yield f"{words}: {', '.join(counted)}."
    if not report.counts:
        yield f"There is nothing in {scope.source}."


def _tell_signing(relay: "Relay", account: str) -> None:
    """Reminds of the setting without which forms that the shop goes on signing would prove nothing."""
    if relay.account(account).capabilities.signs_elsewhere is None:
        variable = f"PAYRELAY_GATEWAYS__{account.upper()}__SIGNS_ELSEWHERE"
        say(f"As long as the shop signs forms of its own, set {variable}=true; afterwards false.")


async def _stored_name(relay: "Relay", principal: str) -> str:
    stored = await relay.access.principals.stored_name(principal)
    known = {each.principal for each in await relay.access.credentials.list()}
    if stored not in known:
        raise CommandError(f"there is no key of the principal {principal}: payrelay keys create --name {principal}")
    return stored


def _opened(place: str, app_key_file: Path | None, is_merchant: "IsMerchant") -> "ImportSource":
    """Opens a file in Payrelay's own form here, and whatever has another form by payrelay-tools."""
    from payrelay.imports.flows.sources import csv_source

    why = ""
    if "://" not in place and app_key_file is None:
        try:
            return csv_source(Path(place), is_merchant)
        except ImportUnreadableError as error:
            why = str(error)
    try:
        from payrelay_tools.laravel.source import laravel_source
    except ModuleNotFoundError as error:
        needed = f"for a shop's tables {missing_package(error)}"
        raise CommandError(f"{_named(place)}: {'; '.join(filter(None, (why, needed)))}") from None
    with _unreadable(place):
        return laravel_source(place, _keys_from(app_key_file), is_merchant)


def _named(place: str) -> str:
    """Names what is read; an address may have a password."""
    return "the database" if "://" in place else place


def _keys_from(path: Path | None) -> "AppKeys":
    from payrelay_tools.laravel.secrets import AppKeys, app_keys_in

    if path is None:
        return AppKeys()
    try:
        with path.open("rb") as opened:
            return app_keys_in(opened.read(KEY_FILE_BYTES_MAX).decode(errors="replace"))
    except ValueError as error:
        raise CommandError(f"--app-key-file: {path} {error}") from None


@contextmanager
def _unreadable(source: str) -> Iterator[None]:
    """Ends the command where the source can't be read; what was stored until then stays."""
    try:
        yield
    except ImportUnreadableError as error:
        raise CommandError(f"{_named(source)}: {error}", UNUSABLE) from None


@contextmanager
def _written(path: Path | None) -> Iterator[IO[str] | None]:
    if path is None:
        yield None
        return
    with path.open("w", encoding="utf-8", newline="") as out:
        yield out
