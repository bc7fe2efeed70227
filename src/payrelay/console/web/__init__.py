"""What every page of the console shares: cookies, forms, templates, and what a page is asked."""
