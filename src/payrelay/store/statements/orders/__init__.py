"""SQL about orders."""
