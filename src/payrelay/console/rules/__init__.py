"""The people who may use the console: what each role may do, how somebody signs in, and what is written down of it."""
