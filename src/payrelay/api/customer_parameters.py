"""The parameters of the routes for stored customers."""

import re
from typing import Final

from payrelay.api.parameters import ORDER_ID_LENGTH_MAX, Parameter
from payrelay.core.customers import State

_CUSTOMER_ID: Final = r"cus_[0-9a-f]{32}"
_EXAMPLE: Final = "cus_019c8b2f5a7e4d10b6f3a92c7e08d154"
_customer_id_match: Final = re.compile(_CUSTOMER_ID).fullmatch


def _is_customer_id(text: str) -> str | None:
    return None if _customer_id_match(text) else "must be the id of a customer"


def _is_reference(text: str) -> str | None:
    return None if 1 <= len(text) <= ORDER_ID_LENGTH_MAX else f"must have 1 to {ORDER_ID_LENGTH_MAX} characters"


def _is_state(text: str) -> str | None:
    return None if text in {*State} else f"must be one of {', '.join(State)}"


def _anything(_: str) -> str | None:
    return None


CUSTOMER: Final = Parameter(
    name="id",
    sentence="Identifier of the customer.",
    schema={"type": "string", "pattern": f"^{_CUSTOMER_ID}$"},
    # A wrong one is no such customer.
    complaint=_anything,
    example=_EXAMPLE,
)
REFERENCE: Final = Parameter(
    name="reference",
    sentence="Only those that you call so.",
    schema={"type": "string", "minLength": 1, "maxLength": ORDER_ID_LENGTH_MAX, "pattern": r"^[^\x00]*$"},
    complaint=_is_reference,
    example="user-17",
)
CUSTOMER_STATE: Final = Parameter(
    name="state",
    sentence="Only customers in this state.",
    schema={"type": "string", "enum": [*State]},
    complaint=_is_state,
    example=State.ACTIVE,
)
CUSTOMER_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this customer; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_CUSTOMER_ID}$"},
    complaint=_is_customer_id,
    example=_EXAMPLE,
)
