"""The sections of the settings about events, about retention and about the reconciliation."""

from functools import partial
from typing import Annotated, Final

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator

from payrelay.core.events.destinations import HTTPS_PORT, AllowedDestinations
from payrelay.core.moments import span_s
from payrelay.core.retention import PERIODS_MIN_S, WHY_MIN, Kept, Periods
from payrelay.settings import parse

KEEP: Final = "keep"
"""In place of a period: for ever."""


def period_s(kept: Kept, value: object) -> int | None:
    """Reads how long data is kept, in seconds; None for ``keep``."""
    if value is None or str(value) == KEEP:
        return None
    try:
        seconds = span_s(str(value))
    except ValueError as error:
        raise ValueError(f"{error}, or {KEEP}") from None
    least = PERIODS_MIN_S[kept]
    if seconds < least:
        raise ValueError(f"must be at least {least // 86_400}d, or {KEEP}: {WHY_MIN[kept]}")
    return seconds


def _period(kept: Kept) -> PlainValidator:
    return PlainValidator(partial(period_s, kept))


class RetentionSettings(BaseModel):
    """How long each kind of data is kept, in seconds; None for ever. See ``core.retention.Kept``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    answers: Annotated[int | None, _period(Kept.ANSWERS)] = 90 * 86_400
    calls: Annotated[int | None, _period(Kept.CALLS)] = 180 * 86_400
    histories: Annotated[int | None, _period(Kept.HISTORIES)] = 400 * 86_400
    notifications: Annotated[int | None, _period(Kept.NOTIFICATIONS)] = 400 * 86_400
    events: Annotated[int | None, _period(Kept.EVENTS)] = 30 * 86_400

    @property
    def periods(self) -> Periods:
        """The periods in milliseconds."""
        seconds: dict[str, int | None] = self.model_dump()
        return Periods(**{name: None if each is None else each * 1000 for name, each in seconds.items()})


class EventSettings(BaseModel):
    """The settings for the delivery of events."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)

    allowed_hosts: Annotated[AllowedDestinations, PlainValidator(parse.allowed_hosts)] = AllowedDestinations()
    """Destinations that events may be sent to although they are not public, or not over https."""
    allowed_ports: Annotated[frozenset[int], PlainValidator(parse.ports)] = frozenset({HTTPS_PORT})
    """The ports of public addresses that events may be sent to."""

    @property
    def destinations(self) -> AllowedDestinations:
        """Where events may be sent."""
        return msgspec.structs.replace(self.allowed_hosts, ports=self.allowed_ports)


class ReconciliationSettings(BaseModel):
    """The settings for the reconciliation of our books with the gateway's and the bank's."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    timezone: Annotated[str, AfterValidator(parse.timezone)] | None = None
    """The time zone in which the days of the books end; None for each gateway's own."""
