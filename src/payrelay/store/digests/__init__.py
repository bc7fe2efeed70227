"""Keyed digests on rows, which nobody can make who lacks the key."""
