"""Every SQL statement that runs after the start, by name, with a sentence each; one module for each noun.

The tables are in ``engine/schema/``.
"""
