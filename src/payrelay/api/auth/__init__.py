"""Who is calling, and what that one may do."""
