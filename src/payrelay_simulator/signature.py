"""The gateway's signature over a payment, computed by the simulator's own code."""

import hashlib


def md5_upper(text: str) -> str:
    """Return the upper-case hexadecimal MD5 digest; the protocol prescribes MD5, weak as it is."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def md5sig(*parts: str, merchant_secret: str) -> str:
    """Sign the parts in the order given: merchant id, order id, amount with two decimals, currency, status code."""
    return md5_upper("".join(parts) + md5_upper(merchant_secret))


def spoiled(signature: str) -> str:
    """Return a signature of the right form that never verifies: every digit is another one."""
    return signature.translate(str.maketrans("0123456789ABCDEF", "FEDCBA9876543210"))
