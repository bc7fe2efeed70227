"""Registers endpoints, and reads the feed of events."""
