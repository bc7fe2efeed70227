"""Authentication and permission: keys, client tokens, tokens of an identity provider, and what each may see."""
