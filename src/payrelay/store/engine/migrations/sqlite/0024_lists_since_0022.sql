-- An index for each list and search, so that none reads what grows. One that is partial excludes what is usual.

-- Operations: of an account, and of a principal on it. What ended well is most of them, so what didn't has indexes of its own,
-- and so have the kinds that aren't charges. Few rows are in these, and few charges write to them.
CREATE INDEX operations_of ON operations (principal, account, id);
CREATE INDEX operations_account ON operations (account, id);
CREATE INDEX operations_rare ON operations (state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
CREATE INDEX operations_rare_account ON operations (account, state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
CREATE INDEX operations_rare_of ON operations (principal, account, state, id)
    WHERE state IN ('declined', 'failed', 'held', 'needs_attention', 'not_sent', 'pending', 'refused', 'unknown');
CREATE INDEX operations_kind_account ON operations (account, kind, id)
    WHERE kind IN ('authorization', 'cancel', 'capture', 'refund', 'release', 'retry');
CREATE INDEX operations_kind_of ON operations (principal, account, kind, id)
    WHERE kind IN ('authorization', 'cancel', 'capture', 'refund', 'release', 'retry');

-- Known payments, newest first: ids grow, and are numbers written as text.
CREATE INDEX operations_paid ON operations (merchant, length(payment_id), payment_id)
    WHERE payment_id IS NOT NULL AND kind IN ('authorization', 'capture', 'charge', 'retry');
CREATE INDEX checkouts_paid ON checkouts (merchant, length(payment_id), payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX installments_paid ON installments (merchant, length(payment), payment)
    WHERE is_paid = 1 AND payment NOT LIKE 'ntf:%';
CREATE INDEX payments_seen_newest ON payments_seen (merchant, length(payment_id), payment_id);
CREATE INDEX payments_seen_status ON payments_seen (merchant, status, length(payment_id), payment_id);
CREATE INDEX payments_seen_order ON payments_seen (merchant, order_id);

-- Checkouts.
CREATE INDEX checkouts_by_order ON checkouts (order_id, id);
CREATE INDEX checkouts_account ON checkouts (account, id);
CREATE INDEX checkouts_rare ON checkouts (state, id) WHERE state IN ('cancelled', 'expired', 'failed', 'notified');
CREATE INDEX checkouts_rare_account ON checkouts (account, state, id)
    WHERE state IN ('cancelled', 'expired', 'failed', 'notified');
CREATE INDEX checkouts_principal ON checkouts (principal);

-- Notifications.
CREATE INDEX notifications_by_order ON notifications (order_id, id);
CREATE INDEX notifications_payment ON notifications (payment_id, id) WHERE payment_id IS NOT NULL;
CREATE INDEX notifications_account ON notifications (account, id);
CREATE INDEX notifications_rare_account ON notifications (account, state, id)
    WHERE state IN ('ignored', 'needs_attention', 'refused');

-- Customers.
CREATE INDEX customers_principal ON customers (principal, id);
CREATE INDEX customers_of_account ON customers (principal, account, id);
CREATE INDEX customers_account ON customers (account, id);
CREATE INDEX customers_by_reference ON customers (reference_hash, id) WHERE reference_hash IS NOT NULL;
CREATE INDEX customers_rare ON customers (state, id) WHERE state IN ('erased', 'removed');
CREATE INDEX customers_rare_of ON customers (principal, account, state, id) WHERE state IN ('erased', 'removed');

-- Subscriptions; alerts about held operations; searches under way; and the deliveries that did not arrive.
CREATE INDEX subscriptions_newest ON subscriptions (subscription_id, merchant);
CREATE INDEX subscriptions_account ON subscriptions (account, subscription_id, merchant);
CREATE INDEX subscriptions_order ON subscriptions (order_id, subscription_id, merchant);
CREATE INDEX subscriptions_of ON subscriptions (merchant, principal, subscription_id);
CREATE INDEX alerts_held ON alerts (created_at_ms) WHERE version = 1;
CREATE INDEX order_searches_leased ON order_searches (leased_until_ms) WHERE leased_until_ms IS NOT NULL;
CREATE INDEX deliveries_rare ON deliveries (endpoint_id, state, position) WHERE state IN ('given_up', 'waiting');

-- Others took their place.
DROP INDEX operations_principal;
DROP INDEX operations_open;

-- What the planner takes the indexes for: rows, and rows for each value of the columns. Without, it takes one column for
-- another. These are fixed, as every statement is tried with them; the numbers are those of a million operations.
ANALYZE sqlite_schema;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('accepted_tokens', 'accepted_tokens', '20000 10000 1 1'),
    ('accepted_tokens', 'accepted_tokens_hash', '20000 1'),
    ('access_tokens', 'sqlite_autoindex_access_tokens_1', '20 1'),
    ('alerts', 'alerts', '5000 1 1'),
    ('alerts', 'alerts_due', '9 1'),
    ('alerts', 'alerts_held', '1000 1'),
    ('anchor_alerts', 'anchor_alerts', '1000 1 1'),
    ('anchor_alerts', 'anchor_alerts_day', '1000 1'),
    ('anchor_alerts', 'anchor_alerts_due', '9 1'),
    ('bumps', 'sqlite_autoindex_bumps_1', '20 1'),
    ('chargebacks', 'chargebacks', '5000 2000 1'),
    ('chargebacks', 'chargebacks_operation', '5000 1'),
    ('checkout_alerts', 'checkout_alerts', '1000 1 1'),
    ('checkout_alerts', 'checkout_alerts_due', '9 1'),
    ('checkouts', 'checkouts_account', '200000 100000 1'),
    ('checkouts', 'checkouts_bound', '10000 4 1'),
    ('checkouts', 'checkouts_by_order', '200000 1 1'),
    ('checkouts', 'checkouts_customer', '4000 4 1'),
    ('checkouts', 'checkouts_ending', '73 1'),
    ('checkouts', 'checkouts_forgettable', '50000 1'),
    ('checkouts', 'checkouts_guard', '200000 80000 1'),
    ('checkouts', 'checkouts_key', '50000 20000 1'),
    ('checkouts', 'checkouts_order', '200000 100000 1'),
    ('checkouts', 'checkouts_paid', '200000 80000 80000 1'),
    ('checkouts', 'checkouts_payment', '200000 1'),
    ('checkouts', 'checkouts_principal', '200000 50000'),
    ('checkouts', 'checkouts_rare', '50000 10000 1'),
    ('checkouts', 'checkouts_rare_account', '50000 50000 10000 1'),
    ('checkouts', 'checkouts_reference', '50000 50000 20000 7 1'),
    ('checkouts', 'checkouts_subscription', '4000 1'),
    ('checkouts', 'sqlite_autoindex_checkouts_1', '200000 1'),
    ('client_tokens', 'client_tokens_credential', '100000 5000'),
    ('client_tokens', 'client_tokens_customer', '100000 2 2'),
    ('client_tokens', 'client_tokens_end', '100000 1'),
    ('client_tokens', 'client_tokens_of', '100000 20000 20000 1'),
    ('client_tokens', 'sqlite_autoindex_client_tokens_1', '100000 1'),
    ('credentials', 'sqlite_autoindex_credentials_1', '20 1'),
    ('customers', 'customers_account', '100000 50000 1'),
    ('customers', 'customers_active', '100000 50000 20000 1'),
    ('customers', 'customers_by_reference', '100000 2 1'),
    ('customers', 'customers_of', '100000 50000 20000 1'),
    ('customers', 'customers_of_account', '100000 20000 20000 1'),
    ('customers', 'customers_principal', '100000 20000 1'),
    ('customers', 'customers_rare', '1000 500 1'),
    ('customers', 'customers_rare_of', '1000 500 500 300 1'),
    ('customers', 'customers_reference', '100000 100000 30000 2 1'),
    ('customers', 'customers_token', '100000 50000 20000 1 1'),
    ('customers', 'sqlite_autoindex_customers_1', '100000 1'),
    ('data_keys', 'sqlite_autoindex_data_keys_1', '500000 1'),
    ('deliveries', 'deliveries', '500000 200000 1'),
    ('deliveries', 'deliveries_due', '100 34 1 1'),
    ('deliveries', 'deliveries_in_order', '100 34 1 1'),
    ('deliveries', 'deliveries_rare', '200 67 34 1'),
    ('endpoint_alerts', 'endpoint_alerts', '1000 1 1'),
    ('endpoint_alerts', 'endpoint_alerts_due', '9 1'),
    ('endpoints', 'endpoints_of', '4 4 2 1'),
    ('endpoints', 'sqlite_autoindex_endpoints_1', '4 1'),
    ('events', 'events_about', '1000000 1 1'),
    ('events', 'events_of', '1000000 500000 200000 1'),
    ('events', 'sqlite_autoindex_events_1', '1000000 1'),
    ('grandfathered', 'grandfathered_of', '20 2 1'),
    ('grandfathered', 'sqlite_autoindex_grandfathered_1', '20 1'),
    ('heartbeats', 'heartbeats', '20 1'),
    ('history', 'history', '3000000 3 1'),
    ('history', 'history_at', '3000000 1'),
    ('installments', 'installments', '200000 100000 10 1'),
    ('installments', 'installments_paid', '200000 90000 90000 1'),
    ('installments', 'installments_payment', '200000 1'),
    ('key_residues', 'key_residues', '20 1'),
    ('meta', 'sqlite_autoindex_meta_1', '20 1'),
    ('notification_alerts', 'notification_alerts', '1000 1 1'),
    ('notification_alerts', 'notification_alerts_due', '9 1'),
    ('notification_alerts', 'notification_alerts_subject', '1000 500 1 1'),
    ('notifications', 'notifications_account', '300000 200000 1'),
    ('notifications', 'notifications_body', '100000 1'),
    ('notifications', 'notifications_by_order', '300000 1 1'),
    ('notifications', 'notifications_digest', '300000 200000 1'),
    ('notifications', 'notifications_due', '60 1'),
    ('notifications', 'notifications_order', '300000 200000 1 1'),
    ('notifications', 'notifications_payment', '300000 1 1'),
    ('notifications', 'notifications_rare_account', '20000 20000 5000 1'),
    ('notifications', 'notifications_refused', '600 600 1'),
    ('notifications', 'notifications_state', '300000 50000 1'),
    ('notifications', 'sqlite_autoindex_notifications_1', '300000 1'),
    ('operations', 'operations_account', '1000000 500000 1'),
    ('operations', 'operations_claim', '100000 1 1'),
    ('operations', 'operations_claim_ends', '100000 1'),
    ('operations', 'operations_customer', '100000 20 1'),
    ('operations', 'operations_guard', '1000000 500000 1'),
    ('operations', 'operations_key', '500000 1 1'),
    ('operations', 'operations_kind_account', '60000 60000 10000 1'),
    ('operations', 'operations_kind_of', '60000 20000 20000 5000 1'),
    ('operations', 'operations_of', '1000000 200000 200000 1'),
    ('operations', 'operations_order', '1000000 1 1'),
    ('operations', 'operations_paid', '900000 500000 500000 1'),
    ('operations', 'operations_payment', '1000000 1 1'),
    ('operations', 'operations_probe', '50 1'),
    ('operations', 'operations_rare', '40000 5000 1'),
    ('operations', 'operations_rare_account', '40000 20000 4000 1'),
    ('operations', 'operations_rare_of', '40000 10000 8000 2000 1'),
    ('operations', 'operations_result', '10000 1'),
    ('operations', 'operations_subscription', '6000 2 1'),
    ('operations', 'operations_under_way', '20 1'),
    ('operations', 'operations_without_text', '20 1'),
    ('operations', 'sqlite_autoindex_operations_1', '1000000 1'),
    ('order_searches', 'order_searches', '50000 20000 1'),
    ('order_searches', 'order_searches_leased', '10 1'),
    ('order_searches', 'order_searches_old', '50000 1'),
    ('paused_accounts', 'sqlite_autoindex_paused_accounts_1', '20 1'),
    ('payments_seen', 'payments_seen', '300000 200000 1'),
    ('payments_seen', 'payments_seen_newest', '300000 200000 200000 1'),
    ('payments_seen', 'payments_seen_order', '300000 200000 1'),
    ('payments_seen', 'payments_seen_status', '300000 200000 80000 80000 1'),
    ('places', 'places', '50 50 1'),
    ('principal_groups', 'principal_groups_name', '20 1'),
    ('principal_groups', 'sqlite_autoindex_principal_groups_1', '20 1'),
    ('principal_names', 'sqlite_autoindex_principal_names_1', '20 1'),
    ('readings', 'readings_read_at', '50000 1'),
    ('readings', 'sqlite_autoindex_readings_1', '50000 20000 1'),
    ('row_alerts', 'row_alerts', '1000 1 1'),
    ('row_alerts', 'row_alerts_due', '9 1'),
    ('signed_texts', 'signed_texts', '300000 200000 2 1'),
    ('signed_texts', 'signed_texts_subject', '300000 1'),
    ('subscriptions', 'subscriptions', '20000 10000 1'),
    ('subscriptions', 'subscriptions_account', '20000 10000 1 1'),
    ('subscriptions', 'subscriptions_newest', '20000 1 1'),
    ('subscriptions', 'subscriptions_of', '20000 10000 3000 1'),
    ('subscriptions', 'subscriptions_order', '20000 1 1 1');
ANALYZE sqlite_schema;
