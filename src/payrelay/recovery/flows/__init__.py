"""Recovers from commits that the database has lost."""
