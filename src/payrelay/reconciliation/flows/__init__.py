"""Reconciliation: reads statements, compares days, lets a person close differences and days."""
