"""Checkouts: what a customer is asked for, where each stands, and what proves that it was paid."""
