"""The routes: the rows of the table, their bodies and handlers."""
