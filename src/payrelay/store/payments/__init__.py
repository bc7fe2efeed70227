"""Stores operations and their histories."""
