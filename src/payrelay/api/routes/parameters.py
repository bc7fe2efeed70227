"""The parameters that routes take in their path and query: one value each, from which check and schema are made."""

from dataclasses import dataclass
from typing import Final

from payrelay.api.http.text_checks import Complaint, anything, at_most_long, matches, one_of, up_to
from payrelay.core.calls import SUBSCRIPTION_ID_DIGITS_MAX
from payrelay.core.payments.idempotency import KEY_LENGTH_MAX
from payrelay.core.payments.operation import Kind, State
from payrelay.errors import FieldError
from payrelay.flows.payments.find_operations import PAGE_SIZE_MAX

ORDER_ID_LENGTH_MAX: Final = 255
"""As in the body of a charge."""
PAGE_SIZE_USUAL: Final = 20
"""What fits a screen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        name: as it stands in the address.
        sentence: what it is, for the docs.
        schema: the JSON Schema of its value.
        complaint: gives what is wrong with a text, in words that fit behind the name, or None.
        example: a value to try.
        is_required: whether a query must have it; what a path has is always there.
    """

    name: str
    sentence: str
    schema: dict[str, object]
    complaint: Complaint
    example: str | int
    is_required: bool = False


def query_errors(parameters: tuple[Parameter, ...], values: dict[str, str]) -> list[FieldError]:
    """Lists what is wrong with the values of a query whose names are known."""
    return [
        FieldError(parameter.name, words)
        for parameter in parameters
        if parameter.name in values and (words := parameter.complaint(values[parameter.name])) is not None
    ]


_NUMBER: Final = rf"[0-9]{{1,{SUBSCRIPTION_ID_DIGITS_MAX}}}"
_OPERATION_ID: Final = r"op_[0-9a-f]{32}"
_CT_ID: Final = r"ct_[0-9a-f]{32}"
_TEXT_SCHEMA: Final[dict[str, object]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": ORDER_ID_LENGTH_MAX,
    "pattern": r"^[^\x00]*$",
}

ORDER: Final = Parameter(
    name="id",
    sentence="Identifier of the order.",
    schema=_TEXT_SCHEMA,
    complaint=at_most_long(ORDER_ID_LENGTH_MAX),
    example="Order12345",
)
SUBSCRIPTION: Final = Parameter(
    name="id",
    sentence="The gateway's subscription identifier.",
    schema={"type": "string", "pattern": f"^{_NUMBER}$"},
    # A wrong one is no such subscription: the route answers 404, and sends nothing.
    complaint=anything,
    example="420075032251",
)
OPERATION: Final = Parameter(
    name="id",
    sentence="Identifier of the operation.",
    schema={"type": "string", "pattern": f"^{_OPERATION_ID}$"},
    complaint=anything,
    example="op_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
CHECKOUT: Final = Parameter(
    name="id",
    sentence="Identifier of the checkout.",
    schema={"type": "string", "pattern": "^chk_[0-9a-f]{32}$"},
    complaint=anything,
    example="chk_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="idempotency_key",
    sentence="The Idempotency-Key of the request, unquoted.",
    schema={"type": "string", "pattern": rf"^[!-~]{{1,{KEY_LENGTH_MAX}}}$"},
    complaint=anything,
    example="order-12345-attempt-1",
)
EXPAND: Final = Parameter(
    name="expand",
    sentence="`payments` adds the subscription's payments.",
    schema={"type": "string", "enum": ["payments"]},
    complaint=one_of("payments"),
    example="payments",
)
STATE: Final = Parameter(
    name="state",
    sentence="Only operations in this state.",
    schema={"type": "string", "enum": [*State]},
    complaint=one_of(*State),
    example=State.UNKNOWN,
)
KIND: Final = Parameter(
    name="kind",
    sentence="Only operations of this kind.",
    schema={"type": "string", "enum": [*Kind]},
    complaint=one_of(*Kind),
    example=Kind.CHARGE,
)
ORDER_ID: Final = Parameter(
    name="order_id",
    sentence="Only operations on this order.",
    schema=_TEXT_SCHEMA,
    complaint=at_most_long(ORDER_ID_LENGTH_MAX),
    example="Order12345",
)
PAYMENT_ID: Final = Parameter(
    name="payment_id",
    sentence="Only operations on this payment.",
    schema={"type": "string", "pattern": f"^{_NUMBER}$"},
    complaint=matches(_NUMBER, "must be 1 to 19 digits"),
    example="320025021815",
)
SUBSCRIPTION_ID: Final = Parameter(
    name="subscription_id",
    sentence="Only operations on this subscription.",
    schema={"type": "string", "pattern": f"^{_NUMBER}$"},
    complaint=matches(_NUMBER, "must be 1 to 19 digits"),
    example="420075032251",
)
SUBSCRIPTION_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this subscription; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_NUMBER}$"},
    complaint=matches(_NUMBER, "must be the id of a subscription"),
    example="420075032251",
)
CLIENT_TOKEN: Final = Parameter(
    name="id",
    sentence="Identifier of the client token.",
    schema={"type": "string", "pattern": f"^{_CT_ID}$"},
    complaint=anything,
    example="ct_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
TOKEN_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this token; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_CT_ID}$"},
    complaint=matches(_CT_ID, "must be the id of a client token"),
    example="ct_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
OF_CUSTOMER: Final = Parameter(
    name="customer_id",
    sentence="Only those of this customer.",
    schema=_TEXT_SCHEMA,
    complaint=at_most_long(ORDER_ID_LENGTH_MAX),
    example="cus_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
OF_CREDENTIAL: Final = Parameter(
    name="credential_id",
    sentence="Only those that this key has issued; its id as `payrelay keys list` shows it.",
    schema=_TEXT_SCHEMA,
    complaint=at_most_long(ORDER_ID_LENGTH_MAX),
    example="Q7nGb2LxT0ap",
)
CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this operation; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_OPERATION_ID}$"},
    complaint=matches(_OPERATION_ID, "must be the id of an operation"),
    example="op_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
LIMIT: Final = Parameter(
    name="limit",
    sentence="Operations on the page.",
    schema={"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE_USUAL},
    complaint=up_to(PAGE_SIZE_MAX),
    example=PAGE_SIZE_USUAL,
)
