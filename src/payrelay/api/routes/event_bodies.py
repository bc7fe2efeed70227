"""The bodies of endpoints: what is registered, changed and replayed."""

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.routes.bodies import Body, Text
from payrelay.core.events.delivery import LABEL_LENGTH_MAX, PATTERNS, PATTERNS_MAX, URL_LENGTH_MAX, EndpointState
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.events.manage_endpoints import REPLAYED_IDS_MAX, Changes, NewEndpoint, ReplayedEvents

# What a setting allows beyond this is left out here.
_PUBLIC_URL: Final = r"^https://([a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?\.){1,4}[a-z]{2,20}(/[!-\"$-\[\]-~]*)?$"
_Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=URL_LENGTH_MAX,
        description="An `https` address.",
        extra_json_schema={"pattern": _PUBLIC_URL},
    ),
]
_Type = Annotated[str, Meta(min_length=1, max_length=100, extra_json_schema={"enum": [*PATTERNS]})]
_Types = Annotated[
    list[_Type],
    Meta(
        min_length=1,
        max_length=PATTERNS_MAX,
        description="What is sent: `*`, such as `operation.*`, or whole types of events.",
    ),
]
# Letters of other languages are taken too; what of Unicode can be printed is more than a pattern says.
_Label = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LABEL_LENGTH_MAX,
        description="For people; printable characters.",
        extra_json_schema={"pattern": "^[ -~]*[!-~][ -~]*$"},
    ),
]
_Moment = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=40,
        description="RFC 3339, such as 2026-11-21T10:00:00Z.",
        extra_json_schema={"format": "date-time"},
    ),
]


class NewEndpointBody(Body, frozen=True, kw_only=True):
    """The body that registers an endpoint."""

    url: _Url
    types: _Types | UnsetType = UNSET
    label: _Label | UnsetType = UNSET

    def new(self) -> NewEndpoint:
        """Gives the endpoint that is asked for."""
        return NewEndpoint(
            url=self.url,
            types=("*",) if self.types is UNSET else tuple(self.types),
            label=None if self.label is UNSET else self.label,
        )


class ChangeEndpointBody(Body, frozen=True, kw_only=True):
    """The body that changes an endpoint; what is not there stays as it is."""

    url: _Url | UnsetType = UNSET
    types: _Types | UnsetType = UNSET
    label: _Label | UnsetType | None = UNSET
    state: Literal["active", "paused", "stopped"] | UnsetType = UNSET

    def changes(self) -> Changes:
        """Gives the changes that are asked for."""
        return Changes(
            url=self.url,
            types=UNSET if self.types is UNSET else tuple(self.types),
            label=self.label,
            state=UNSET if self.state is UNSET else EndpointState(self.state),
        )


class ReplayBody(Body, frozen=True, kw_only=True):
    """The body of a replay: some events by their ids, or all that the endpoint wants of a span of time."""

    ids: Annotated[list[Text], Meta(min_length=1, max_length=REPLAYED_IDS_MAX)] | UnsetType = UNSET
    since: _Moment | UnsetType = UNSET
    until: _Moment | UnsetType = UNSET

    def span(self) -> ReplayedEvents:
        """Gives what is to be sent again; raises Refusal (invalid_request)."""
        if self.ids is not UNSET:
            if not self.ids or self.since is not UNSET or self.until is not UNSET:
                raise wrong_fields(
                    [FieldError("ids", "must not be empty, and not be given together with since and until")]
                )
            return ReplayedEvents(ids=tuple(self.ids))
        if self.since is UNSET:
            raise wrong_fields([FieldError("since", "is required, or ids")])
        until_ms = NEVER_MS if self.until is UNSET else _ms("until", self.until)
        return ReplayedEvents(from_ms=_ms("since", self.since), until_ms=until_ms)


def _ms(name: str, text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return int(at.timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise wrong_fields([FieldError(name, "must be a moment such as 2026-11-21T10:00:00Z")])
