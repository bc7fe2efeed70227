"""Copies of the database: making, checking and restoring them."""
