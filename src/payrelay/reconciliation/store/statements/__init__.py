"""Statements about reconciliation: our books of a day, the lines of statements, differences and days."""
