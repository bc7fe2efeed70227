"""The trial of PayHere's sandbox: what each call and form brings, compared with the protocol that we know."""
