"""Statements of the clearing of old data."""
