"""The commands for notifications: list them, show all that is known of one, replay some, accept one."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Json, Reason, Sure, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import (
    DONE,
    NOT_FOUND,
    REFUSED,
    CommandError,
    complain,
    is_confirmed,
    not_found,
    require_answerable,
    require_found,
    say,
)
from payrelay.core.moments import rfc3339, span_text, spoken
from payrelay.core.money import decimal_text
from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationFilter,
    NotificationState,
)
from payrelay.core.payments.explanations import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

app = group("notifications", "Notifications: what the gateway posted, and the result.")

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


@app.command(
    "list",
    epilog=examples("payrelay notifications list", "payrelay notifications list --state needs_attention --json"),
)
@awaited
async def list_notifications(
    *,
    state: Annotated[
        NotificationState | None, typer.Option(metavar="STATE", help=state_help(NotificationState))
    ] = None,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Only those on this account.")] = None,
    order: Annotated[str | None, typer.Option(metavar="ORDER", help="Only those of this order.")] = None,
    payment: Annotated[str | None, typer.Option(metavar="PAYMENT", help="Only those of this payment.")] = None,
    limit: Annotated[int, typer.Option(metavar="COUNT", help="How many, newest first.", min=1, max=1_000)] = 50,
    as_json: Json = False,
) -> int:
    """List what the gateway posted, newest first."""
    from payrelay.cli.terminal.pages import show_result

    wanted = NotificationFilter(state=state, account=account, order_id=order, payment_id=payment)
    async with session(read_settings()) as relay:
        found = await relay.inbox.list(wanted, before=None, limit=limit)
        now_ms = relay.clock.now_ms()
    return show_result([*map(_view, found)], list_page(found, now_ms), as_json=as_json)


@app.command("show", epilog=examples("payrelay notifications show ID", "payrelay notifications show ID --json"))
@awaited
async def show_notification(notification_id: NotificationId, *, as_json: Json = False) -> int:
    """Show all that is known of a notification, without secrets."""
    from payrelay.cli.terminal.pages import show_result

    async with session(read_settings()) as relay:
        notification = require_found(await relay.inbox.get(notification_id), "notification", notification_id)
        now_ms = relay.clock.now_ms()
    return show_result(_view(notification), show_page(notification, now_ms), as_json=as_json)


@app.command("replay", epilog=examples("payrelay notifications replay ID ID"))
@awaited
async def replay_notifications(
    notification_ids: Annotated[list[str], typer.Argument(metavar="ID", help="As `notifications list` shows them.")],
) -> int:
    """Process notifications again, once the cause is mended."""
    from payrelay.flows.notifications.replay_notification import NotReplayedError, UnknownNotificationError, replay

    code = DONE
    async with session(read_settings()) as relay:
        for notification_id in notification_ids:
            try:
                replayed = await replay(relay, notification_id)
            except UnknownNotificationError:
                complain(f"there is no notification {notification_id}")
                code = NOT_FOUND
            except NotReplayedError as error:
                complain(f"{notification_id}: {error}")
                code = code or REFUSED
            else:
                say(f"Replayed: {replayed.id}. The service processes it now, or when it is started.")
    return code


@app.command("accept", epilog=examples('payrelay notifications accept ID --reason "the portal shows this hold"'))
@awaited
async def accept_notification(
    notification_id: NotificationId, *, reason: Reason = "", by: By = None, yes: Sure = False
) -> int:
    """Accept a doubted notification of an authorization.

    Its token becomes that of the order, in place of an earlier one.
    """
    from payrelay.flows.notifications.replay_notification import NotReplayedError, UnknownNotificationError, accept

    settings = read_settings()
    require_answerable(is_sure=yes, undone="nothing was accepted")
    who, why = operator_from(by), reason_from(reason)
    async with session(settings) as relay:
        notification = require_found(await relay.inbox.get(notification_id), "notification", notification_id)
        if not yes:
            say(f"{notification.id}, {_what(notification)}: {notification.reason.phrase}")
            say("· A capture by the checkout's id then names the token of this notification, and proves its amount.")
            if not is_confirmed("Accept it?"):
                raise CommandError("nothing was accepted", REFUSED)
        try:
            await accept(relay, notification_id, operator=who, reason=why)
        except UnknownNotificationError:
            raise not_found("notification", notification_id) from None
        except NotReplayedError as error:
            raise CommandError(f"{notification_id}: {error}", REFUSED) from None
    say(f"Accepted: {notification_id}. By {who}: {why}. The service processes it now, or when it is started.")
    return DONE


def list_page(notifications: Sequence[Notification], now_ms: int) -> "RenderableType":
    """Shows notifications, newest first."""
    from rich.console import Group
    from rich.text import Text

    from payrelay.cli.terminal.pages import entry, table

    rows = ((_age(each.received_at_ms, now_ms), entry(each.id, _what(each)), _standing(each)) for each in notifications)
    titles = ("age", "notification", "state")
    shown = table(titles, rows, ids="notification", empty="Nothing here: there is no such notification.", leading=1)
    hint = Text("\npayrelay notifications show ID shows all that is known of one.", style="dim")
    return Group(shown, hint) if notifications else shown


def show_page(notification: Notification, now_ms: int) -> "RenderableType":
    """Shows all that is known of one notification in clear; sealed content stays sealed."""
    from rich.console import Group
    from rich.text import Text

    from payrelay.cli.terminal.pages import facts

    head = Text.assemble((notification.id, "bold"), "  ", (_word(notification.state), _style(notification.state)))
    return Group(head, Text(f"{_phrase(notification)}\n"), facts(_facts(notification, now_ms)))


def _facts(notification: Notification, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "what", _what(notification)
    yield "from", AUTHENTICITY_PHRASES[notification.authenticity]
    yield "on", f"account {notification.account}"
    if notification.message_type is not None:
        yield "about", _word(notification.message_type)
    received = f"{spoken(notification.received_at_ms)} UTC, {_age(notification.received_at_ms, now_ms)} ago"
    yield "received", received
    if notification.repeats:
        times = "once" if notification.repeats == 1 else f"{notification.repeats} times"
        yield "received again", f"{times}, at last {spoken(notification.last_at_ms)} UTC"
    yield "processed", f"{notification.attempts} times"
    if notification.next_at_ms is not None:
        yield "next", f"{spoken(notification.next_at_ms)} UTC"
    if notification.accepted_at_ms is not None:
        by, because = printable(notification.accepted_by or ""), printable(notification.accepted_because or "")
        yield "accepted", f"{spoken(notification.accepted_at_ms)} UTC by {by}: {because}"
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


def _standing(notification: Notification) -> "Text":
    from rich.text import Text

    state = (_word(notification.state), _style(notification.state))
    return Text.assemble(state, ": ", notification.reason.phrase)


def _phrase(notification: Notification) -> str:
    text = notification.reason.phrase
    return f"{text[:1].upper()}{text[1:]}."


def _view(notification: Notification) -> dict[str, object]:
    shown = msgspec.structs.asdict(notification)
    moments = {
        name: shown.pop(f"{name}_ms") for name in ("received_at", "last_at", "next_at", "updated_at", "accepted_at")
    }
    amount_minor = shown.pop("amount_minor")
    del shown["gives_up_at_ms"], shown["version"]
    return {
        **shown,
        "amount": None if amount_minor is None else decimal_text(amount_minor),
        "explanation": notification.reason.phrase,
        **{name: None if at_ms is None else rfc3339(at_ms) for name, at_ms in moments.items()},
    }


def _word(word: str) -> str:
    return word.replace("_", " ")


def _style(state: NotificationState) -> str:
    return STYLES.get(state, "bold")


def _age(at_ms: int, now_ms: int) -> str:
    return span_text(max(now_ms - at_ms, 0) // 1000)
