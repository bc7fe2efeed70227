-- Whose call a permit was last given for, so that each principal and each app gets its fair share of the budget.
ALTER TABLE places ADD COLUMN consumer text;
