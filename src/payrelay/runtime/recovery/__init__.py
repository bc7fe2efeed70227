"""Knows of lost commits, and of the recovery from them."""
