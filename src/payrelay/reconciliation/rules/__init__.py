"""Reconciliation: our books of a day beside what the gateway and the bank say of it."""
