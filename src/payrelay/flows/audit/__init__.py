"""The audit: recomputes the chain of entries, and looks for rows that nothing vouches for."""
