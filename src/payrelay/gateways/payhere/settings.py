"""The settings that only a PayHere account has, with their checks and defaults.

To be changed together: the fields below and ``docs/configuration.md``; a test compares them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from payrelay.core.money import AmountError, typed_minor
from payrelay.core.secret import Secret, secret_of

DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"rate_limit": "20/10s", "timezone": "Asia/Colombo"})
"""The gateway's own limit and zone."""
AMOUNTS_MAX: Final = 20
"""Amounts in one setting: more than any gateway has ever notified."""


def _hash_amount(value: object) -> int:
    try:
        # A number in a file has lost its zeros by now: 10.0 stands for 10.00.
        return typed_minor(str(value))
    except AmountError:
        raise ValueError("must be an amount such as 10.00") from None


def _amounts(value: object) -> frozenset[int]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple | frozenset) or len(listed) > AMOUNTS_MAX:
        raise ValueError(f"must be at most {AMOUNTS_MAX} amounts such as 0.00,1.00")
    return frozenset(_listed_amount(str(each)) for each in listed if str(each).strip())


def _listed_amount(text: str) -> int:
    try:
        return typed_minor(text, may_be_0=True)
    except AmountError:
        raise ValueError("must be amounts such as 0.00,1.00") from None


_HashAmount = Annotated[int, PlainValidator(_hash_amount)]
_Secret = Annotated[Secret, PlainValidator(secret_of)]


class PayHereSettings(BaseModel):
    """One account's credentials, and the amounts that are signed in its forms."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    app_id: Annotated[str, Field(min_length=1)]
    app_secret: _Secret
    merchant_id: Annotated[str, Field(min_length=1)] | None = None
    merchant_secret: _Secret | None = None
    preapproval_amount_lkr: _HashAmount = 1_000
    """Hundredths; signed in the form of an approval that charges nothing, in rupees."""
    preapproval_amount_other: _HashAmount = 51
    """Hundredths; signed in the form of an approval that charges nothing, in any other currency."""
    trial_amount_lkr: _HashAmount = 1_000
    """Hundredths; signed in the form of a plan that begins on a later day, in rupees."""
    trial_amount_other: _HashAmount = 50
    """Hundredths; signed in the form of a plan that begins on a later day, in any other currency."""
    approval_amounts: Annotated[frozenset[int], PlainValidator(_amounts)] = frozenset()
    """Hundredths; amounts beside the signed one that the gateway notifies for an approval that charges nothing."""
    signs_elsewhere: bool | None = None
    """Whether anybody but this service signs forms with ``merchant_secret``; None counts as true."""
