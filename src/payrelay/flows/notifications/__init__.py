"""Ingests what a gateway posts, and does what follows from it."""
