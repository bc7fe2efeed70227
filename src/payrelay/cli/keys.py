"""The commands for keys: make, list and revoke them, with a server running on the same database or without."""

import json
import sys
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from payrelay.cli.session import DONE, UNKNOWN, Json, awaited, complain, read_settings, say
from payrelay.clock import Clock
from payrelay.core.access.credential import DEFAULT_SCOPES, Credential, Rate, Scope, is_usable
from payrelay.core.durations import SpanError, span_s
from payrelay.core.moments import rfc3339
from payrelay.core.money import AmountError, decimal_text, minor_units

app = typer.Typer(name="keys", help="Keys for clients.", no_args_is_help=True)


@app.command()
@awaited
async def create(
    *,
    name: Annotated[str, typer.Option(help="Who it is for; keys of one name see each other's operations.")],
    scope: Annotated[list[Scope] | None, typer.Option(help="What it may do; repeatable.")] = None,
    account: Annotated[list[str] | None, typer.Option(help="A gateway account that it may use; repeatable.")] = None,
    max_amount: Annotated[str | None, typer.Option(help="The largest amount of one operation.")] = None,
    rate: Annotated[str | None, typer.Option(help="Its own limit of requests, such as 100/60s.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends, from now, such as 30d.")] = None,
) -> int:
    """Make a key, and print it alone on standard output."""
    from payrelay.app import opened_credentials
    from payrelay.flows.access.issue_key import KeyRequest, issue_key

    settings = read_settings()
    wanted = KeyRequest(
        principal=_name(name),
        environment=settings.key_environment,
        scopes=frozenset(scope) if scope else DEFAULT_SCOPES,
        accounts=_accounts(account),
        amount_max_minor=_amount(max_amount),
        rate=_rate(rate),
        life_s=_life_s(expires),
    )

    unknown = sorted((wanted.accounts or frozenset()) - settings.gateways.keys())
    if unknown:
        known = ", ".join(settings.gateways) or "none"
        complain(f"no account is called {', '.join(unknown)} here; configured: {known}")
    async with opened_credentials(settings, Clock()) as credentials:
        issued = await issue_key(credentials, Clock(), wanted)
    sys.stdout.write(f"{issued.key}\n")
    note = f"The key {issued.credential.id} of {wanted.principal} is shown this once; keep it like a password."
    Console(stderr=True, highlight=False).print(note, markup=False)
    return DONE


@app.command("list")
@awaited
async def list_all(*, as_json: Json = False) -> int:
    """List the keys, without their secrets."""
    from payrelay.app import opened_credentials
    from payrelay.flows.access.issue_key import list_keys

    async with opened_credentials(read_settings(), Clock()) as credentials:
        rows = [_shown(credential, Clock().now_ms()) for credential in await list_keys(credentials)]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        Console(highlight=False).print(_table(rows))
    return DONE


@app.command()
@awaited
async def revoke(key_id: Annotated[str, typer.Argument(metavar="ID", help="As `keys list` shows it.")]) -> int:
    """End a key."""
    from payrelay.app import opened_credentials
    from payrelay.flows.access.issue_key import revoke_key

    async with opened_credentials(read_settings(), Clock()) as credentials:
        is_revoked = await revoke_key(credentials, Clock(), key_id)
    if not is_revoked:
        complain(f"there is no key {key_id} that could be revoked")
        return UNKNOWN
    say(f"The key {key_id} is revoked.")
    return DONE


def _name(text: str) -> str:
    from payrelay.flows.access.issue_key import PRINCIPAL_LENGTH_MAX

    if not text.strip() or not text.isprintable() or len(text) > PRINCIPAL_LENGTH_MAX:
        raise typer.BadParameter(f"must have 1 to {PRINCIPAL_LENGTH_MAX} printable characters", param_hint="--name")
    return text


def _accounts(names: list[str] | None) -> frozenset[str] | None:
    from payrelay.settings import GATEWAY_NAME

    for name in names or ():
        if GATEWAY_NAME.fullmatch(name) is None:
            raise typer.BadParameter("must be small letters, digits and hyphens", param_hint="--account")
    return frozenset(names) if names else None


def _amount(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return minor_units(Decimal(text))
    except InvalidOperation:
        raise typer.BadParameter("must be a number", param_hint="--max-amount") from None
    except AmountError as error:
        raise typer.BadParameter(str(error), param_hint="--max-amount") from None


def _rate(text: str | None) -> Rate | None:
    try:
        return None if text is None else Rate.parse(text)
    except SpanError as error:
        raise typer.BadParameter(str(error), param_hint="--rate") from None


def _life_s(text: str | None) -> int | None:
    try:
        seconds = None if text is None else span_s(text)
    except SpanError as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from None
    if seconds == 0:
        raise typer.BadParameter("must be longer than nothing", param_hint="--expires")
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
        "created_at": _utc(credential.created_at_ms),
        "expires_at": _utc(credential.expires_at_ms),
        "revoked_at": _utc(credential.revoked_at_ms),
    }


def _utc(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms, "seconds")


def _table(rows: list[dict[str, object]]) -> Table:
    table = Table("id", "name", "may", "limits", "created", "ends")
    for row in rows:
        table.add_row(str(row["id"]), str(row["name"]), _may(row), _limits(row), _day(row["created_at"]), _end(row))
    return table


def _may(row: dict[str, object]) -> str:
    scopes = row["scopes"]
    names = scopes if isinstance(scopes, list) else []
    return "the default scopes" if set(names) == DEFAULT_SCOPES else "\n".join(names)


def _limits(row: dict[str, object]) -> str:
    limits = [str(row[name]) for name in ("max_amount", "rate") if row[name] is not None]
    accounts = row["accounts"]
    return "\n".join([*limits, *(f"on {name}" for name in (accounts if isinstance(accounts, list) else ()))])


def _end(row: dict[str, object]) -> str:
    if row["revoked_at"] is not None:
        return f"revoked {_day(row['revoked_at'])}"
    return "never" if row["expires_at"] is None else _day(row["expires_at"])


def _day(moment: object) -> str:
    return str(moment).partition("T")[0]
