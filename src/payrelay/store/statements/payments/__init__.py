"""Statements about operations."""
