-- When it became known that a page or an installment was paid, the first time. Rows of before this table have none.
-- subject is what the books call it: the checkout's id, or sub/, the subscription and the payment.
CREATE TABLE payments_learnt (
    merchant     text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    learnt_at_ms bigint           NOT NULL,
    PRIMARY KEY (merchant, subject)
);
CREATE INDEX payments_learnt_at ON payments_learnt (merchant, learnt_at_ms, subject);
