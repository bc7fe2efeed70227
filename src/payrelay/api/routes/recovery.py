"""The recovery of a database that lost commits: where it stands, and that a principal has repeated its requests."""

from typing import Final

from payrelay.api.requests.amounts import whole
from payrelay.api.requests.body import Body, CheckedValue
from payrelay.api.requests.route import Route, refused
from payrelay.core.access.credential import Scope
from payrelay.errors import Code
from payrelay.recovery.flows.acknowledge import acknowledge_recovery, show_recovery

INCARNATIONS_MAX: Final = 1_000_000_000
"""More than any database has."""


def _number(value: object) -> int:
    value = whole(value, INCARNATIONS_MAX)
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
        handler=lambda relay, parsed: acknowledge_recovery(
            relay, parsed.request, int(parsed.body_as(AcknowledgementBody).incarnation)
        ),
        answer="recovery",
        body=AcknowledgementBody,
        own_codes=(Code.CONFLICT,),
        bound=refused,
    ),
)
