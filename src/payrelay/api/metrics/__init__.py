"""What is counted, and how things stand."""
