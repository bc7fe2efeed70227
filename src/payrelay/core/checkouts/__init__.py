"""Checkouts: their requests and states, and what proves that one was paid."""
