"""Statements about what was imported from before Payrelay."""
