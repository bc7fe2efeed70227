"""The command that feeds a report of the gateway's payments into a recovery."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, session
from payrelay.cli.terminal.declaring import By, Json, Sure, awaited
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    REFUSED,
    UNUSABLE,
    CommandError,
    complain,
    is_confirmed,
    require_answerable,
    say,
    show,
    show_json,
)
from payrelay.recovery.rules.gateway_reports import (
    BYTES_MAX,
    FOR_A_PERSON,
    ReportedPayment,
    ReportUnreadableError,
    ReportVerdict,
    read_report,
)

if TYPE_CHECKING:
    from payrelay.recovery.flows.reports.import_report import ReportImport

UNDONE: Final = "the report was not fed in"
WORDS: Final = {
    ReportVerdict.KNOWN: "known here",
    ReportVerdict.CONTRADICTS: "known here with another order, amount or currency: a person must look",
    ReportVerdict.ADOPTED: "now the answer to a held charge",
    ReportVerdict.NOBODYS: "paid in the lost time, and of nothing here: a person must look",
    ReportVerdict.GIVEN_BACK: "of nothing here, and given back",
    ReportVerdict.OUTSIDE: "of nothing here, and not of the lost time",
}
"""Each verdict, for people."""
UNPROVED: Final = (
    "A report shows no authorization, no void and no refund of a part, and it never shows that a payment is not there."
)


@awaited
async def import_one_report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header, or a JSON array.")],
    *,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose payments they are; needed with several accounts.")
    ] = None,
    by: By = None,
    as_json: Json = False,
    yes: Sure = False,
) -> int:
    """Feed a report of the gateway's payments into the recovery.

    A held charge that one payment fits exactly is answered with it. Payments of the lost time that nothing here
    explains call an operator. Nothing is stored of a file with a wrong line.
    """
    from payrelay.recovery.flows.reports.import_report import NoRecoveryError, import_report

    settings = read_settings()
    require_answerable(is_sure=yes, undone=UNDONE)
    who, content = operator_from(by), _content_of(file)
    digest = hashlib.sha256(content).hexdigest()
    async with session(settings) as relay:
        name = account or (next(iter(relay.accounts)) if len(relay.accounts) == 1 else None)
        if name is None or name not in relay.accounts:
            raise CommandError(f"--account must be one of {', '.join(sorted(relay.accounts))}")
        try:
            payments = read_report(content, relay.account(name).timezone)
        except ReportUnreadableError as error:
            for problem in error.problems:
                complain(f"{file}: {problem}")
            raise CommandError(f"{UNDONE}: nothing is stored of a file with a wrong line", UNUSABLE) from None
        if not yes and not is_confirmed(_question(payments, name)):
            raise CommandError(UNDONE, REFUSED)
        try:
            imported = await import_report(relay, name, payments, digest=digest, operator=who)
        except NoRecoveryError as error:
            raise CommandError(str(error), REFUSED) from None
    if as_json:
        show_json(_json(imported, digest))
    else:
        for line in _lines(imported):
            show(line)
    if imported.is_known:
        say("This file was fed in before; only what is new of it was stored.")
    return FAULTY if any(each.verdict in FOR_A_PERSON for each in imported.judged) else DONE


def _content_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"{file} can't be read: {error.strerror}") from None


def _question(payments: tuple[ReportedPayment, ...], account: str) -> str:
    return f"Take {len(payments)} payments of the account {account} as what the gateway shows, in your name?"


def _lines(imported: "ReportImport") -> Iterator[str]:
    """Tells what a report came to: each payment that was adopted or needs a person, and how many there are of each."""
    for each in imported.judged:
        if each.verdict is ReportVerdict.ADOPTED or each.verdict in FOR_A_PERSON:
            payment = each.reported.payment
            of = f" {each.operation_id}" if each.operation_id is not None else ""
            yield f"{each.reported.place}: payment {payment.payment_id} of order {payment.order_id}: {each.verdict}{of}"
    counts = Counter(each.verdict for each in imported.judged)
    for verdict, words in WORDS.items():
        if counts[verdict]:
            yield f"{counts[verdict]} {words}."
    if imported.unproved:
        left = ", ".join(f"{count} of kind {kind}" for kind, count in imported.unproved.items())
        yield f"Still held: {left}. {UNPROVED}"


def _json(imported: "ReportImport", digest: str) -> dict[str, object]:
    return {
        "digest": digest,
        "is_known": imported.is_known,
        "still_held": dict(imported.unproved),
        "payments": [
            {
                "place": each.reported.place,
                "payment_id": each.reported.payment.payment_id,
                "order_id": each.reported.payment.order_id,
                "verdict": each.verdict,
                "operation_id": each.operation_id,
            }
            for each in imported.judged
        ],
    }
