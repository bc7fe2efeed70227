"""Finds out what became of an operation whose answer was lost."""
