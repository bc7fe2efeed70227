"""Refunds: keeps them within what is left of a payment, and lets a person insist."""
