"""The hosted pages: what a payer's browser meets between the merchant's form and the merchant's own pages."""
