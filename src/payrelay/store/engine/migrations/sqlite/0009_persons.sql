-- By what a person's checkouts are found, to be forgotten: the customer that came of them, that whose phone opened them,
-- and the caller's own name for the person.
CREATE INDEX checkouts_customer ON checkouts (customer_id, id) WHERE customer_id IS NOT NULL;
CREATE INDEX checkouts_bound ON checkouts (bound_customer_id, id) WHERE bound_customer_id IS NOT NULL;
CREATE INDEX checkouts_reference ON checkouts (merchant, principal, customer_reference, id)
    WHERE customer_reference IS NOT NULL;
