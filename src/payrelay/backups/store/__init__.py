"""Backups: a consistent copy of a database that a server is using, and what is known of the copy."""
