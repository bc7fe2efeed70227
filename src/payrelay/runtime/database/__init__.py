"""Knows whether the database lacks commits."""
