"""The commands by which an operator says what became of something in the lost time."""

import typer

from payrelay.cli.terminal.declaring import examples
from payrelay.recovery.commands.decide import decide_many
from payrelay.recovery.commands.decide_checkout import decide_one_checkout
from payrelay.recovery.commands.import_report import import_one_report


def add_decisions(app: typer.Typer) -> None:
    """Adds the commands to those of a recovery."""
    app.command(
        "decide",
        epilog=examples(
            "payrelay recover decide done ID --payment-id 3200250 --reason portal",
            "payrelay recover decide send --where kind=void --reason portal",
        ),
    )(decide_many)
    app.command(
        "checkout",
        epilog=examples(
            "payrelay recover checkout paid ID --payment-id 3200250 --reason portal",
            "payrelay recover checkout unpaid ID --reason portal",
        ),
    )(decide_one_checkout)
    app.command(
        "import-report",
        epilog=examples(
            "payrelay recover import-report payments.csv", "payrelay recover import-report payments.json --json"
        ),
    )(import_one_report)
