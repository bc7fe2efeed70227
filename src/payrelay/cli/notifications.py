"""The commands for notifications: list what came, show all that is known of one, have one worked on anew."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from payrelay.cli.session import DONE, REFUSED, UNKNOWN, Json, awaited, complain, read_settings, say, session
from payrelay.core.durations import span_text
from payrelay.core.moments import rfc3339, spoken
from payrelay.core.money import decimal_text
from payrelay.core.notifications.notification import (
    REASON_PHRASES,
    Authenticity,
    Notification,
    NotificationFilter,
    NotificationState,
)
from payrelay.core.payments.explanations import printable

app = typer.Typer(
    name="notifications",
    help="Notifications: what the gateway posted, and what became of it.",
    no_args_is_help=True,
)

NotificationId = Annotated[str, typer.Argument(metavar="ID", help="As `notifications list` shows it.")]

STYLES: Final = {
    NotificationState.NEEDS_ATTENTION: "bold red",
    NotificationState.REFUSED: "magenta",
    NotificationState.WAITING: "yellow",
    NotificationState.RECEIVED: "cyan",
    NotificationState.APPLIED: "green",
}
AUTHENTICITY_PHRASES: Final = {
    Authenticity.GENUINE: "the gateway: the signature is right",
    Authenticity.FORGED: "unknown: the signature is wrong",
    Authenticity.WRONG_MERCHANT: "somebody else's gateway account",
    Authenticity.NO_SECRET: "unknown: there was no MERCHANT_SECRET to check it by",
}


@app.command("list")
@awaited
async def list_notifications(
    *,
    state: Annotated[NotificationState | None, typer.Option(help="Only those in this state.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those on this account.")] = None,
    order: Annotated[str | None, typer.Option(help="Only those of this order.")] = None,
    payment: Annotated[str | None, typer.Option(help="Only those of this payment.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=1_000)] = 50,
    as_json: Json = False,
) -> int:
    """List what the gateway posted, newest first."""
    wanted = NotificationFilter(state=state, account=account, order_id=order, payment_id=payment)
    async with session(read_settings()) as relay:
        found = await relay.inbox.list(wanted, before=None, limit=limit)
        now_ms = relay.clock.now_ms()
    if as_json:
        sys.stdout.write(_json([_view(each) for each in found]).decode())
    else:
        Console(highlight=False).print(list_page(found, now_ms))
    return DONE


@app.command("show")
@awaited
async def show_notification(notification_id: NotificationId, *, as_json: Json = False) -> int:
    """Show all that is known of a notification, but for what is secret."""
    async with session(read_settings()) as relay:
        notification = await relay.inbox.get(notification_id)
        now_ms = relay.clock.now_ms()
    if notification is None:
        complain(f"there is no notification {printable(notification_id)}")
        return UNKNOWN
    if as_json:
        sys.stdout.write(_json(_view(notification)).decode())
    else:
        Console(highlight=False).print(show_page(notification, now_ms))
    return DONE


@app.command("replay")
@awaited
async def replay_notifications(
    notification_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As `notifications list` shows them.")],
) -> int:
    """Have notifications worked on anew, once what kept them from their end is mended."""
    from payrelay.flows.notifications.replay_notification import NotReplayedError, UnknownNotificationError, replay

    code = DONE
    async with session(read_settings()) as relay:
        for notification_id in notification_ids:
            try:
                replayed = await replay(relay, notification_id)
            except UnknownNotificationError:
                complain(f"there is no notification {printable(notification_id)}")
                code = UNKNOWN
            except NotReplayedError as error:
                complain(f"{printable(notification_id)}: {error}")
                code = code or REFUSED
            else:
                say(f"Replayed: {replayed.id}. The service works on it now, or when it is started.")
    return code


def list_page(notifications: Sequence[Notification], now_ms: int) -> RenderableType:
    """Shows notifications, newest first."""
    if not notifications:
        return Text("Nothing here: no such notification came.")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, leading=1)
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("notification", overflow="fold", width=len("ntf_") + 32)
    table.add_column("where it stands", overflow="fold")
    for each in notifications:
        named = Text.assemble((each.id, "bold"), "\n", printable(_what(each)))
        table.add_row(_age(each.received_at_ms, now_ms), named, _standing(each))
    return Group(table, Text("\npayrelay notifications show ID tells all that is known of one.", style="dim"))


def show_page(notification: Notification, now_ms: int) -> RenderableType:
    """Shows all that is known of one notification in clear; what is sealed of it stays sealed."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _facts(notification, now_ms):
        table.add_row(name, printable(text))
    head = Text.assemble((notification.id, "bold"), "  ", (_word(notification.state), _style(notification.state)))
    return Group(head, Text(f"{_phrase(notification)}\n"), table)


def _facts(notification: Notification, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "what", _what(notification)
    yield "from", AUTHENTICITY_PHRASES[notification.authenticity]
    yield "on", f"account {notification.account}"
    if notification.message_type is not None:
        yield "about", _word(notification.message_type)
    came = f"{spoken(notification.received_at_ms)} UTC, {_age(notification.received_at_ms, now_ms)} ago"
    yield "came", came
    if notification.repeats:
        times = "once" if notification.repeats == 1 else f"{notification.repeats} times"
        yield "came again", f"{times}, at last {spoken(notification.last_at_ms)} UTC"
    yield "worked on", f"{notification.attempts} times"
    if notification.next_at_ms is not None:
        yield "next", f"{spoken(notification.next_at_ms)} UTC"
    yield "digest", notification.digest


def _what(notification: Notification) -> str:
    words = [notification.kind.value, _word(notification.reported), "order", notification.order_id]
    if notification.amount_minor is not None:
        words += [notification.currency, decimal_text(notification.amount_minor)]
    if notification.payment_id is not None:
        words += ["payment", notification.payment_id]
    if notification.subscription_id is not None:
        words += ["subscription", notification.subscription_id]
    return " ".join(words)


def _standing(notification: Notification) -> Text:
    state = (_word(notification.state), _style(notification.state))
    return Text.assemble(state, ": ", printable(REASON_PHRASES[notification.reason]))


def _phrase(notification: Notification) -> str:
    text = REASON_PHRASES[notification.reason]
    return f"{text[:1].upper()}{text[1:]}."


def _view(notification: Notification) -> dict[str, object]:
    shown = msgspec.structs.asdict(notification)
    moments = {name: shown.pop(f"{name}_ms") for name in ("received_at", "last_at", "next_at", "updated_at")}
    amount_minor = shown.pop("amount_minor")
    del shown["gives_up_at_ms"], shown["version"]
    return {
        **shown,
        "amount": None if amount_minor is None else decimal_text(amount_minor),
        "explanation": REASON_PHRASES[notification.reason],
        **{name: None if at_ms is None else rfc3339(at_ms) for name, at_ms in moments.items()},
    }


def _word(word: str) -> str:
    return word.replace("_", " ")


def _style(state: NotificationState) -> str:
    return STYLES.get(state, "bold")


def _age(at_ms: int, now_ms: int) -> str:
    return span_text(max(now_ms - at_ms, 0) // 1000)


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
