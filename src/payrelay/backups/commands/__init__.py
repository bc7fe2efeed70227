"""The commands that back the database up, and bring it back."""
