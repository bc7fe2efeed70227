"""Writes and reads what travels to and from PayHere. Pure."""
