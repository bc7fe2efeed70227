"""The books: statements are compared with what was stored, and days are closed."""
