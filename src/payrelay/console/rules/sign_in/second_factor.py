"""Codes of a second factor that change with time (TOTP, RFC 6238): six digits, a new one every 30 seconds."""

import base64
import hmac
from typing import Final

import pyotp

from payrelay.core.secret import Secret

STEP_S: Final = 30
DRIFT_STEPS: Final = 1
"""How many steps a phone's clock may be off, either way."""
ISSUER: Final = "Payrelay"
_MS: Final = 1000
_SECRET_BYTES: Final = 20
"""As many as a phone's app hashes with (RFC 4226, 4)."""


def new_secret(token: str, nonce: str) -> Secret:
    """Makes the secret that a phone is to get, from what the browser's cookie has and what the store keeps for it.

    So whoever reads the store alone can't make it, and no two sessions have the same one.
    """
    made = hmac.digest(token.encode(errors="replace"), f"payrelay authenticator {nonce}".encode(), "sha256")
    return Secret(base64.b32encode(made[:_SECRET_BYTES]).decode())


def step_of_code(secret: Secret, code: str, now_ms: int, after_step: int) -> int | None:
    """Gives the step of a right code; None for a wrong one, and for one of ``after_step`` or before.

    The step is stored, so that a code that somebody looked at over a shoulder opens nothing a second time.
    """
    digits = code.replace(" ", "")
    totp = pyotp.TOTP(secret.reveal())
    now_step = now_ms // _MS // STEP_S
    found = None
    for step in range(max(now_step - DRIFT_STEPS, 0), now_step + DRIFT_STEPS + 1):
        is_equal = hmac.compare_digest(totp.generate_otp(step).encode(), digits.encode())
        if is_equal and step > after_step:
            found = step
    return found


def enrolment_address(secret: Secret, email: str) -> Secret:
    """Gives the address that an authenticator app reads from the QR code."""
    return Secret(pyotp.TOTP(secret.reveal()).provisioning_uri(name=email, issuer_name=ISSUER))
