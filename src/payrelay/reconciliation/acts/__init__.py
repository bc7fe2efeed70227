"""The books in the console: days and differences as things that an operator acts on."""
