"""The router: one address for several installations of Payrelay, each with a database and accounts of its own."""
