"""Databases, migrations and units of work; knows no noun."""
