"""Operators, their sessions, and the history of what they did."""
