"""Who may do what: keys, tokens for phones, an identity provider's tokens, and what is theirs."""
