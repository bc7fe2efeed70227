"""What is known of a database before it is opened: its address, what may be changed, what a backup is."""
