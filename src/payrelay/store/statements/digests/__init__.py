"""Statements about the digests of rows."""
