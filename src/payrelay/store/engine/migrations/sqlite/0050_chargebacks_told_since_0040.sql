-- Chargebacks that were notified, and that no record proves yet: a few at a time.
CREATE INDEX notifications_chargebacks ON notifications (merchant, order_id)
WHERE kind = 'chargeback' AND state IN ('received', 'waiting');

-- Its statistics, as in 0024.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('notifications', 'notifications_chargebacks', '20 10 1');
ANALYZE sqlite_schema;
