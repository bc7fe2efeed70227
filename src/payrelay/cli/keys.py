"""The commands for keys: make, list and revoke them, with or without a server on the same database."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, NOT_FOUND, CommandError, complain, say, show, show_json
from payrelay.clock import Clock
from payrelay.core.access.credential import DEFAULT_SCOPES, Credential, Rate, Scope, is_usable
from payrelay.core.moments import SpanError, rfc3339, span_s
from payrelay.core.money import AmountError, decimal_text, typed_minor

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell

app = group("keys", "Keys: what clients call the API with.")


@app.command(
    epilog=examples(
        "KEY=$(payrelay keys create --name shop)",
        "payrelay keys create --name app --scope payments:charge --max-amount 5000",
    )
)
@awaited
async def create(
    *,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Who it is for: its principal. Keys of one name act as one.")
    ],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(metavar="SCOPE", help=f"What it may do; repeatable. One of {', '.join(Scope)}."),
    ] = None,
    account: Annotated[
        list[str] | None, typer.Option(metavar="ACCOUNT", help="A gateway account that it may use; repeatable.")
    ] = None,
    max_amount: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="The largest amount of one operation.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="COUNT/SPAN", help="Its own limit of requests, such as 100/60s.")
    ] = None,
    payments_max: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many payments an order may have, whoever makes them."),
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="SPAN", help="When it ends, from now, such as 30d.")] = None,
) -> int:
    """Make a key, and print it."""
    from payrelay.app_commands import opened_key_stores
    from payrelay.flows.access.issue_key import KeyRequest, issue_key

    settings = read_settings()
    wanted = KeyRequest(
        principal=_name(name),
        environment=settings.key_environment,
        scopes=frozenset(scope) if scope else DEFAULT_SCOPES,
        accounts=_accounts(account),
        amount_max_minor=_amount(max_amount),
        rate=_rate(rate),
        payments_max=_payments_max(payments_max),
        life_s=_life_s(expires),
    )

    unknown = sorted((wanted.accounts or frozenset()) - settings.gateways.keys())
    if unknown:
        known = ", ".join(settings.gateways) or "none"
        raise CommandError(f"no account is called {', '.join(unknown)} here; configured: {known}", NOT_FOUND)
    async with opened_key_stores(settings, Clock(), may_make=True) as stores:
        principal = await stores.principals.stored_name(wanted.principal)
        issued = await issue_key(stores.credentials, Clock(), msgspec.structs.replace(wanted, principal=principal))
    show(str(issued.key))
    say(f"The key {issued.credential.id} of {principal} is shown this once; store it like a password.")
    return DONE


@app.command("list", epilog=examples("payrelay keys list", "payrelay keys list --json"))
@awaited
async def list_all(*, as_json: Json = False) -> int:
    """List the keys, without their secrets."""
    from payrelay.app_commands import opened_key_stores
    from payrelay.cli.terminal.pages import Page, table
    from payrelay.flows.access.issue_key import list_keys

    async with opened_key_stores(read_settings(), Clock()) as stores:
        rows = [_shown(credential, Clock().now_ms()) for credential in await list_keys(stores.credentials)]
    if as_json:
        show_json(rows)
        return DONE
    titles = ("id", "name", "may", "limits", "created", "ends")
    Page().write(table(titles, map(_row, rows), empty="Nothing here: no key was made yet."))
    return DONE


@app.command(epilog=examples("payrelay keys revoke ID"))
@awaited
async def revoke(key_id: Annotated[str, typer.Argument(metavar="ID", help="As `keys list` shows it.")]) -> int:
    """End a key."""
    from payrelay.app_commands import opened_key_stores
    from payrelay.flows.access.issue_key import revoke_key

    async with opened_key_stores(read_settings(), Clock()) as stores:
        revocation = await revoke_key(stores.credentials, stores.revocations, Clock(), key_id)
    if not revocation.is_new:
        raise CommandError(f"there is no key {key_id} that could be revoked", NOT_FOUND)
    say(f"The key {key_id} is revoked.")
    if not revocation.is_listed:
        complain(f"{stores.revocations.folder} can't be written: a backup from before would have the key valid again")
    return DONE


def _name(text: str) -> str:
    from payrelay.flows.access.issue_key import PRINCIPAL_LENGTH_MAX

    if not text.strip() or not text.isprintable() or len(text) > PRINCIPAL_LENGTH_MAX:
        raise CommandError(f"--name must have 1 to {PRINCIPAL_LENGTH_MAX} printable characters")
    return text


def _accounts(names: list[str] | None) -> frozenset[str] | None:
    from payrelay.settings import GATEWAY_NAME

    for name in names or ():
        if GATEWAY_NAME.fullmatch(name) is None:
            raise CommandError("--account must be small letters, digits and hyphens")
    return frozenset(names) if names else None


def _amount(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return typed_minor(text)
    except AmountError as error:
        raise CommandError(f"--max-amount {error}") from None


def _rate(text: str | None) -> Rate | None:
    try:
        return None if text is None else Rate.parse(text)
    except SpanError as error:
        raise CommandError(f"--rate {error}") from None


def _payments_max(number: int | None) -> int | None:
    from payrelay.flows.access.issue_key import PAYMENTS_OF_ORDER_MAX

    if number is not None and not 1 <= number <= PAYMENTS_OF_ORDER_MAX:
        raise CommandError(f"--payments-max must be 1 to {PAYMENTS_OF_ORDER_MAX}")
    return number


def _life_s(text: str | None) -> int | None:
    try:
        seconds = None if text is None else span_s(text)
    except SpanError as error:
        raise CommandError(f"--expires {error}") from None
    if seconds == 0:
        raise CommandError("--expires must be longer than nothing")
    return seconds


def _shown(credential: Credential, now_ms: int) -> dict[str, object]:
    """Gives a key as it may be shown."""
    limit = credential.amount_max_minor
    quota = credential.rate
    return {
        "id": credential.id,
        "name": credential.principal,
        "is_usable": is_usable(credential, now_ms),
        "scopes": sorted(credential.scopes),
        "accounts": None if credential.accounts is None else sorted(credential.accounts),
        "max_amount": None if limit is None else decimal_text(limit),
        "rate": None if quota is None else f"{quota.count}/{quota.window_s}s",
        "payments_max": credential.payments_max,
        "created_at": _utc(credential.created_at_ms),
        "expires_at": _utc(credential.expires_at_ms),
        "revoked_at": _utc(credential.revoked_at_ms),
    }


def _utc(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms, "seconds")


def _row(row: dict[str, object]) -> "tuple[Cell, ...]":
    return str(row["id"]), str(row["name"]), _may(row), _limits(row), _day(row["created_at"]), _end(row)


def _may(row: dict[str, object]) -> "Cell":
    scopes = row["scopes"]
    names = scopes if isinstance(scopes, list) else []
    return "the default scopes" if set(names) == DEFAULT_SCOPES else names


def _limits(row: dict[str, object]) -> list[str]:
    limits = [str(row[name]) for name in ("max_amount", "rate") if row[name] is not None]
    if row["payments_max"] is not None:
        limits.append(f"{row['payments_max']} for an order")
    accounts = row["accounts"]
    return [*limits, *(f"on {name}" for name in (accounts if isinstance(accounts, list) else ()))]


def _end(row: dict[str, object]) -> str:
    if row["revoked_at"] is not None:
        return f"revoked {_day(row['revoked_at'])}"
    return "never" if row["expires_at"] is None else _day(row["expires_at"])


def _day(moment: object) -> str:
    return str(moment).partition("T")[0]
