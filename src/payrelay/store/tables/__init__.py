"""What goes over the tables of all nouns: which rows have digests, and sealing everything anew."""
