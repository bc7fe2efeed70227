"""The parameters of the routes for stored customers."""

from typing import Final

from payrelay.api.http.text_checks import anything, at_most_long, matches, one_of
from payrelay.api.routes.parameters import ORDER_ID_LENGTH_MAX, Parameter
from payrelay.core.customers.customer import CustomerState

_CUSTOMER_ID: Final = r"cus_[0-9a-f]{32}"
_EXAMPLE: Final = "cus_019c8b2f5a7e4d10b6f3a92c7e08d154"


CUSTOMER: Final = Parameter(
    name="id",
    sentence="Identifier of the customer.",
    schema={"type": "string", "pattern": f"^{_CUSTOMER_ID}$"},
    # A wrong one is no such customer.
    complaint=anything,
    example=_EXAMPLE,
)
REFERENCE: Final = Parameter(
    name="reference",
    sentence="Only those that you call so.",
    schema={"type": "string", "minLength": 1, "maxLength": ORDER_ID_LENGTH_MAX, "pattern": r"^[^\x00]*$"},
    complaint=at_most_long(ORDER_ID_LENGTH_MAX),
    example="user-17",
)
CUSTOMER_STATE: Final = Parameter(
    name="state",
    sentence="Only customers in this state.",
    schema={"type": "string", "enum": [*CustomerState]},
    complaint=one_of(*CustomerState),
    example=CustomerState.ACTIVE,
)
CUSTOMER_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this customer; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_CUSTOMER_ID}$"},
    complaint=matches(_CUSTOMER_ID, "must be the id of a customer"),
    example=_EXAMPLE,
)
