"""Every piece of SQL that runs after the start, by name, with a sentence each; one module a noun.

The tables are in ``migrations/``.
"""
