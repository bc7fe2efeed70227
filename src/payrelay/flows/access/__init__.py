"""Issues, lists and revokes keys and tokens for phones."""
