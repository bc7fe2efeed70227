"""Issues, lists and revokes keys and client tokens."""
