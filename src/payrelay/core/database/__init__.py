"""What is known of a database: its address, its identity, the marks outside it, what may be changed."""
