"""Stores the state of gateway accounts: budgets, access tokens, pauses, and the read cache."""
