"""What the console needs while the process runs."""
