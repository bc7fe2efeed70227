"""Reading a shop's old tables in its database."""
