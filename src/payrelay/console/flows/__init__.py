"""What people do with the console: sign in, manage operators, find orders."""
