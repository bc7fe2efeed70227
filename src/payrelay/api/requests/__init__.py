"""What a request may say: the route that it asks for, its parameters and its body, and how they are read."""
