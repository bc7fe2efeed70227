"""Whether this is the database that the service knows, and whether commits were lost of it."""
