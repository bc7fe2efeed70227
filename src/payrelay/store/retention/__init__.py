"""Clears old data, and remembers how far that has come."""
