-- online
-- An index for each list and search, so that none reads what grows. One that is partial excludes what is usual.

-- Operations: of an account, and of a principal on it. What ended well is most of them, so what didn't has indexes of its own,
-- and so have the kinds that aren't charges. Few rows are in these, and few charges write to them.
DROP INDEX CONCURRENTLY IF EXISTS operations_of;
CREATE INDEX CONCURRENTLY operations_of ON operations (principal, account, id);
DROP INDEX CONCURRENTLY IF EXISTS operations_account;
CREATE INDEX CONCURRENTLY operations_account ON operations (account, id);
DROP INDEX CONCURRENTLY IF EXISTS operations_rare;
CREATE INDEX CONCURRENTLY operations_rare ON operations (state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
DROP INDEX CONCURRENTLY IF EXISTS operations_rare_account;
CREATE INDEX CONCURRENTLY operations_rare_account ON operations (account, state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
DROP INDEX CONCURRENTLY IF EXISTS operations_rare_of;
CREATE INDEX CONCURRENTLY operations_rare_of ON operations (principal, account, state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
DROP INDEX CONCURRENTLY IF EXISTS operations_kind_account;
CREATE INDEX CONCURRENTLY operations_kind_account ON operations (account, kind, id)
    WHERE kind IN ('authorization', 'cancel', 'capture', 'refund', 'release', 'retry');
DROP INDEX CONCURRENTLY IF EXISTS operations_kind_of;
CREATE INDEX CONCURRENTLY operations_kind_of ON operations (principal, account, kind, id)
    WHERE kind IN ('authorization', 'cancel', 'capture', 'refund', 'release', 'retry');

-- Known payments, newest first: ids grow, and are numbers written as text.
DROP INDEX CONCURRENTLY IF EXISTS operations_paid;
CREATE INDEX CONCURRENTLY operations_paid ON operations (merchant, length(payment_id), payment_id)
    WHERE payment_id IS NOT NULL AND kind IN ('authorization', 'capture', 'charge', 'retry');
DROP INDEX CONCURRENTLY IF EXISTS checkouts_paid;
CREATE INDEX CONCURRENTLY checkouts_paid ON checkouts (merchant, length(payment_id), payment_id) WHERE payment_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS installments_paid;
CREATE INDEX CONCURRENTLY installments_paid ON installments (merchant, length(payment), payment)
    WHERE is_paid = 1 AND payment NOT LIKE 'ntf:%';
DROP INDEX CONCURRENTLY IF EXISTS payments_seen_newest;
CREATE INDEX CONCURRENTLY payments_seen_newest ON payments_seen (merchant, length(payment_id), payment_id);
DROP INDEX CONCURRENTLY IF EXISTS payments_seen_status;
CREATE INDEX CONCURRENTLY payments_seen_status ON payments_seen (merchant, status, length(payment_id), payment_id);
DROP INDEX CONCURRENTLY IF EXISTS payments_seen_order;
CREATE INDEX CONCURRENTLY payments_seen_order ON payments_seen (merchant, order_id);

-- Checkouts.
DROP INDEX CONCURRENTLY IF EXISTS checkouts_by_order;
CREATE INDEX CONCURRENTLY checkouts_by_order ON checkouts (order_id, id);
DROP INDEX CONCURRENTLY IF EXISTS checkouts_account;
CREATE INDEX CONCURRENTLY checkouts_account ON checkouts (account, id);
DROP INDEX CONCURRENTLY IF EXISTS checkouts_rare;
CREATE INDEX CONCURRENTLY checkouts_rare ON checkouts (state, id) WHERE state IN ('cancelled', 'expired', 'failed', 'notified');
DROP INDEX CONCURRENTLY IF EXISTS checkouts_rare_account;
CREATE INDEX CONCURRENTLY checkouts_rare_account ON checkouts (account, state, id)
    WHERE state IN ('cancelled', 'expired', 'failed', 'notified');
DROP INDEX CONCURRENTLY IF EXISTS checkouts_principal;
CREATE INDEX CONCURRENTLY checkouts_principal ON checkouts (principal);

-- Notifications.
DROP INDEX CONCURRENTLY IF EXISTS notifications_by_order;
CREATE INDEX CONCURRENTLY notifications_by_order ON notifications (order_id, id);
DROP INDEX CONCURRENTLY IF EXISTS notifications_payment;
CREATE INDEX CONCURRENTLY notifications_payment ON notifications (payment_id, id) WHERE payment_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS notifications_account;
CREATE INDEX CONCURRENTLY notifications_account ON notifications (account, id);
DROP INDEX CONCURRENTLY IF EXISTS notifications_rare_account;
CREATE INDEX CONCURRENTLY notifications_rare_account ON notifications (account, state, id)
    WHERE state IN ('ignored', 'needs_attention', 'refused');

-- Customers.
DROP INDEX CONCURRENTLY IF EXISTS customers_principal;
CREATE INDEX CONCURRENTLY customers_principal ON customers (principal, id);
DROP INDEX CONCURRENTLY IF EXISTS customers_of_account;
CREATE INDEX CONCURRENTLY customers_of_account ON customers (principal, account, id);
DROP INDEX CONCURRENTLY IF EXISTS customers_account;
CREATE INDEX CONCURRENTLY customers_account ON customers (account, id);
DROP INDEX CONCURRENTLY IF EXISTS customers_by_reference;
CREATE INDEX CONCURRENTLY customers_by_reference ON customers (reference_hash, id) WHERE reference_hash IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS customers_rare;
CREATE INDEX CONCURRENTLY customers_rare ON customers (state, id) WHERE state IN ('erased', 'removed');
DROP INDEX CONCURRENTLY IF EXISTS customers_rare_of;
CREATE INDEX CONCURRENTLY customers_rare_of ON customers (principal, account, state, id) WHERE state IN ('erased', 'removed');

-- Subscriptions; alerts about held operations; searches under way; and the deliveries that did not arrive.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_newest;
CREATE INDEX CONCURRENTLY subscriptions_newest ON subscriptions (subscription_id, merchant);
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_account;
CREATE INDEX CONCURRENTLY subscriptions_account ON subscriptions (account, subscription_id, merchant);
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_order;
CREATE INDEX CONCURRENTLY subscriptions_order ON subscriptions (order_id, subscription_id, merchant);
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_of;
CREATE INDEX CONCURRENTLY subscriptions_of ON subscriptions (merchant, principal, subscription_id);
DROP INDEX CONCURRENTLY IF EXISTS alerts_held;
CREATE INDEX CONCURRENTLY alerts_held ON alerts (created_at_ms) WHERE version = 1;
DROP INDEX CONCURRENTLY IF EXISTS order_searches_leased;
CREATE INDEX CONCURRENTLY order_searches_leased ON order_searches (leased_until_ms) WHERE leased_until_ms IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS deliveries_rare;
CREATE INDEX CONCURRENTLY deliveries_rare ON deliveries (endpoint_id, state, position) WHERE state IN ('given_up', 'waiting');

-- Others took their place.
DROP INDEX CONCURRENTLY IF EXISTS operations_principal;
DROP INDEX CONCURRENTLY IF EXISTS operations_open;
