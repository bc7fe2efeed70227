"""Refunds by a person: what a page or a command shows of the payment, and insisting against the figures."""
