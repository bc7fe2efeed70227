"""Statements about keys and tokens."""
