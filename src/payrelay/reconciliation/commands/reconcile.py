"""The commands of the reconciliation: read statements, compare days, close differences and days."""

from payrelay.cli.terminal.declaring import examples, group
from payrelay.reconciliation.commands.closing import close_day, close_difference
from payrelay.reconciliation.commands.comparing import ask, run
from payrelay.reconciliation.commands.exporting import export
from payrelay.reconciliation.commands.importing import import_files
from payrelay.reconciliation.commands.showing import show

app = group("reconcile", "Our books of days, beside the gateway's and the bank's.")

app.command(
    "import",
    epilog=examples(
        "payrelay reconcile import day.csv --profile payments --covers 2026-11-22",
        "payrelay reconcile import account.csv --profile bank",
    ),
)(import_files)
app.command(epilog=examples("payrelay reconcile ask --day 2026-11-22"))(ask)
app.command(
    epilog=examples("payrelay reconcile run --day 2026-11-22", "payrelay reconcile run --days 2026-11"),
)(run)
app.command(
    epilog=examples(
        "payrelay reconcile show", "payrelay reconcile show --day 2026-11-22", "payrelay reconcile show --days 2026-11"
    )
)(show)
app.command(
    epilog=examples(
        "payrelay reconcile export --days 2026-11 > november.beancount",
        "payrelay reconcile export --days 2026-11-22 --format csv",
    )
)(export)
app.command("close-difference", epilog=examples('payrelay reconcile close-difference ID --reason "refunded by hand"'))(
    close_difference
)
app.command(
    "close-day",
    epilog=examples(
        'payrelay reconcile close-day --day 2026-11-22 --reason "all explained" --yes',
        'payrelay reconcile close-day --days 2026-11 --reason "month end" --yes',
    ),
)(close_day)
