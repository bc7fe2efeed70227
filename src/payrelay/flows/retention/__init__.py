"""What happens to data that is old."""
