"""The capabilities of PayHere."""

from typing import Final

from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.payments.operation import Kind

LIVE_ONLY: Final = frozenset({"auto_cancel", "max_retries", "starts_on", "is_recovery_due"})
"""Members of a plan that PayHere's sandbox does not know."""


def capabilities_of(*, is_live: bool, is_signing: bool) -> Capabilities:
    """Gives PayHere's capabilities. It keeps no idempotency keys, and shows no authorization before its capture."""
    return Capabilities(
        does_once=frozenset({Kind.CAPTURE, Kind.CANCEL}),
        finds_orders=True,
        shows_refunds=True,
        shows_installments=True,
        unknown_to_plans=frozenset() if is_live else LIVE_ONLY,
        unset_for_checkouts=() if is_signing else ("MERCHANT_ID", "MERCHANT_SECRET"),
    )
