"""The commands that back a database up, bring it back, and copy it."""
