"""What needs no credential: health, docs, and the pages of a checkout."""
