"""Knows how the parts are on which the process depends: its store, and the clocks of others."""
