"""Where operations and their histories are kept."""
