"""Stores keys, client tokens, and the keys that sign these."""
