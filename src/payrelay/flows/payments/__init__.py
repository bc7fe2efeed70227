"""Charges, captures and refunds: from the claim to the answer."""
