"""The settings of the console."""

import ipaddress
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from payrelay.core.money import AmountError, is_currency, typed_minor
from payrelay.core.operators.roles import TO_CONFIRM, Act
from payrelay.core.secret import Secret, secret_of
from payrelay.settings import parse

_CLAIMS_ARE: Final = "must be claims with their values, such as hd=shop.example, separated by commas"
_Text = Annotated[str, Field(min_length=1, max_length=255)]


def acts_to_confirm(value: object) -> frozenset[Act]:
    """Reads acts by their names, separated by commas. Raises ValueError for one that nobody has to confirm."""
    names = parse.parts(value)
    if not isinstance(names, list | tuple) or not all(name in TO_CONFIRM for name in names):
        raise ValueError(f"must be some of {', '.join(TO_CONFIRM)}, separated by commas")
    return frozenset(map(Act, names))


def amounts_by_currency(value: object) -> dict[str, int]:
    """Reads amounts, such as ``LKR 50000, USD 200``, and gives them in hundredths by currency."""
    texts = parse.parts(value)
    amounts: dict[str, int] = {}
    for text in texts if isinstance(texts, list | tuple) else ("",):
        currency, _, amount = str(text).partition(" ")
        if not is_currency(currency) or currency in amounts:
            raise ValueError("must be amounts such as LKR 50000, USD 200, each with its currency, separated by commas")
        try:
            amounts[currency] = typed_minor(amount)
        except AmountError as error:
            raise ValueError(f"has an amount that {error}") from None
    return amounts


def issuer(text: str) -> str:
    """Checks the issuer of an identity provider, which is kept as it is written: its tokens name it so."""
    parse.private_address(text)
    return text


def claims_with_values(value: object) -> tuple[tuple[str, str], ...]:
    """Reads claims with their values, such as ``hd=shop.example``, separated by commas."""
    texts = parse.parts(value)
    if not isinstance(texts, list | tuple) or not all(isinstance(each, str) for each in texts):
        raise ValueError(_CLAIMS_ARE)
    pairs = tuple((name.strip(), told.strip()) for name, _, told in (each.partition("=") for each in texts))
    if not all(name and told for name, told in pairs):
        raise ValueError(_CLAIMS_ARE)
    return pairs


class ConsoleSettings(BaseModel):
    """The console, which is off unless it is switched on."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    enabled: bool = False
    address: Annotated[parse.ListeningAddress | None, PlainValidator(parse.listening_address)] = None
    """An address of its own; None to serve it at /console on the service's address."""
    public_url: Annotated[str, AfterValidator(parse.private_address), AfterValidator(parse.origin)] | None = None
    """The origin that browsers reach it at; None for this machine alone."""
    second_factor: Literal["required", "optional"] = "required"
    second_person: Annotated[frozenset[Act], PlainValidator(acts_to_confirm)] = frozenset()
    """The acts that one operator proposes and another confirms."""
    second_factor_above: Annotated[dict[str, int], PlainValidator(amounts_by_currency)] = Field(default_factory=dict)
    """Refunds that come to more ask for the second factor again, in hundredths by currency; of others each does."""
    provider_issuer: Annotated[str, AfterValidator(issuer)] | None = None
    """The OpenID Connect provider that operators sign in by; None for none."""
    provider_client_id: _Text | None = None
    provider_client_secret: Annotated[Secret, PlainValidator(secret_of)] | None = None
    provider_email_claim: _Text = "email"
    provider_verified_claim: _Text = "email_verified"
    provider_requires: Annotated[tuple[tuple[str, str], ...], PlainValidator(claims_with_values)] = ()
    """The claims that whoever signs in must have, with their values."""
    provider_second_factor: Annotated[frozenset[str], BeforeValidator(parse.parts)] = frozenset()
    """The values of amr or acr by which the provider says that it asked for a second factor; none counts unless named.
    """
    provider_only: bool = False
    """Whether the provider is the only way in."""


def problem_of_console(console: ConsoleSettings, host: str, accounts: frozenset[str]) -> str | None:
    """Says what keeps the console from being served; None where nothing does. ``host`` is the service's."""
    if not console.enabled:
        return None
    if console.address is None and "console" in accounts:
        return f"{parse.PREFIX}CONSOLE__ADDRESS is missing: an account is called console, and has the same paths"
    listening = host if console.address is None else console.address.host
    if console.public_url is None and not is_loopback(listening):
        return (
            f"{parse.PREFIX}CONSOLE__PUBLIC_URL is missing: where others reach the console, it must know its address,"
            " which is https"
        )
    return _problem_of_provider(console)


def _problem_of_provider(console: ConsoleSettings) -> str | None:
    """Says what keeps operators from signing in by a provider; None where nothing does, or there is none."""
    prefix = f"{parse.PREFIX}CONSOLE__PROVIDER_"
    if console.provider_issuer is None:
        given = sorted(console.model_fields_set - {"provider_issuer"})
        name = next((each for each in given if each.startswith("provider_")), None)
        if name is None:
            return None
        return f"{prefix}ISSUER is missing: {parse.PREFIX}CONSOLE__{name.upper()} says something about a provider"
    if console.provider_client_id is None:
        return f"{prefix}CLIENT_ID is missing: what does the provider call this console?"
    if console.provider_client_secret is None:
        return f"{prefix}CLIENT_SECRET is missing: the provider must know this console by a secret"
    if console.public_url is None:
        return (
            f"{parse.PREFIX}CONSOLE__PUBLIC_URL is missing: the provider leads browsers back to it (for this machine"
            " alone it may be http)"
        )
    return None


def is_loopback(host: str) -> bool:
    """True for an address that only this machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_secure(public_url: str | None) -> bool:
    """True where browsers reach the console over https."""
    return public_url is not None and urlsplit(public_url).scheme == "https"
