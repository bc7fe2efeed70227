"""The recovery of a database that lost commits, as far as a client has a part in it."""

from decimal import Decimal
from typing import Final

from payrelay.api.requests.body import Body, CheckedValue
from payrelay.api.requests.route import MAY_CLASH, Route, refused
from payrelay.core.access.credential import Scope
from payrelay.flows.recovery.acknowledge import acknowledge_by_request, show_recovery

INCARNATIONS_MAX: Final = 1_000_000_000


def _number(value: object) -> int:
    if type(value) is Decimal and value <= INCARNATIONS_MAX and value == value.to_integral_value():
        value = int(value)  # 2.0 is the integer 2 to JSON Schema
    if type(value) is not int or not 1 <= value <= INCARNATIONS_MAX:
        raise ValueError("must be the number of an incarnation, as GET recovery shows it")
    return value


class IncarnationNumber(
    CheckedValue,
    int,
    check=_number,
    schema={
        "type": "integer",
        "minimum": 1,
        "maximum": INCARNATIONS_MAX,
        "description": "The incarnation whose recovery is acknowledged, as `GET recovery` shows it.",
    },
):
    """The number of an incarnation."""


class AcknowledgementBody(Body, frozen=True, kw_only=True):
    """The body of an acknowledgement."""

    incarnation: IncarnationNumber


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="showRecovery",
        method="GET",
        path="/recovery",
        sentence="Show whether the service lost commits of its database, and whether you have acknowledged that",
        scope=Scope.OPERATIONS_READ,
        handler=lambda relay, parsed: show_recovery(relay, parsed.request),
        answer="recovery",
        bound=refused,
    ),
    Route(
        name="acknowledgeRecovery",
        method="POST",
        path="/recovery/acknowledgement",
        sentence="Acknowledge that you have repeated every request of the lost time that got no answer",
        scope=Scope.PAYMENTS_CHARGE,
        handler=lambda relay, parsed: acknowledge_by_request(
            relay, parsed.request, int(parsed.body_as(AcknowledgementBody).incarnation)
        ),
        answer="recovery",
        body=AcknowledgementBody,
        codes=MAY_CLASH,
        bound=refused,
    ),
)
