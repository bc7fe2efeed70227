"""Makes typed values of what the service answers, without ever failing on what it doesn't know."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Self, TypeVar, Union, get_args, get_origin, get_type_hints

MONEY: Final = frozenset(
    {
        "amount",
        "captured_amount",
        "amount_max",
        "startup_fee",
        "unit_amount",
        "gross",
        "fee",
        "net",
        "unit_price",
        "total_price",
        "paid",
        "held",
        "given_back",
        "charged_back",
        "left",
    }
)
"""Members that are money: they have at least two decimals."""
NUMBERS: Final = frozenset({"payment_id", "subscription_id"})
"""Members that are numbers of the gateway's: they have up to 19 digits, and are texts here."""

_HINTS: Final[dict[type, Mapping[str, Any]]] = {}
_HUNDREDTHS: Final = -2
_DIGITS_MAX: Final = 20
"""Before the point, far more than any amount has; Python refuses to give decimals to a number of 27."""
_CENT: Final = Decimal("0.01")

Decoded = TypeVar("Decoded")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A value of the service's.

    Attributes:
        raw: every member as the service wrote it, those that this version doesn't know included, with exact numbers.
    """

    raw: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, value: object) -> Self:
        """Makes it of an object of the service's. A member that is missing or of another type is None or empty."""
        members = value if isinstance(value, dict) else {}
        hints = _hints_of(cls)
        known: dict[str, Any] = {
            each.name: value
            for each in fields(cls)
            if (value := _value(hints[each.name], each.name, members.get(each.name))) is not None
        }
        return cls(**known | {"raw": types.MappingProxyType(members)})


def models(kind: type[Decoded], values: object) -> tuple[Decoded, ...]:
    """Makes a value of each entry of a list; of what is no list, none."""
    return tuple(_value(kind, "", each) for each in values) if isinstance(values, list) else ()


def plain(value: object, name: str = "") -> object:
    """Gives JSON with amounts of two decimals and numbers of the gateway's as texts, as ``raw`` of events has it."""
    if isinstance(value, Mapping):
        return {name: plain(each, name) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if name in MONEY and (money := _money(value)) is not None:
        return money
    return _text(value) if name in NUMBERS and isinstance(value, int) else value


def _hints_of(kind: type) -> Mapping[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _value(hint: Any, name: str, value: object) -> Any:  # noqa: ANN401 - a type is only known to its caller
    """Gives a member as its type; None where it is missing, or of another type."""
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        (kind,) = (each for each in inner if each is not types.NoneType)
        return _value(kind, name, value)
    if origin is tuple:
        return tuple(_value(inner[0], name, each) for each in value) if isinstance(value, list) else None
    if origin is not None:
        return value if isinstance(value, dict) else None
    if issubclass(hint, Model):
        return hint.of(value) if isinstance(value, dict) else None
    if hint is Decimal:
        return _money(value) if name in MONEY else _decimal(value)
    if hint is str:
        return _text(value)
    return value if isinstance(value, hint) and (hint is bool or not isinstance(value, bool)) else None


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    return str(value) if isinstance(value, str | int | Decimal) else None


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        return None
    try:
        decimal = Decimal(value)
    except InvalidOperation:
        return None
    return decimal if decimal.is_finite() else None


def _money(value: object) -> Decimal | None:
    decimal = _decimal(value)
    if decimal is None:
        return None
    exponent = decimal.as_tuple().exponent
    assert isinstance(exponent, int)  # noqa: S101 - a finite number's
    is_short = exponent > _HUNDREDTHS and decimal.adjusted() < _DIGITS_MAX
    return decimal.quantize(_CENT) if is_short else decimal
