"""Statements as files: how their columns are called, and how their lines are read."""
