"""SQL that doesn't stand at the foot of its noun's store file: others need it too, or the file would be long.

Each statement has a name and a sentence. The tables are in ``engine/schema/``.
"""
