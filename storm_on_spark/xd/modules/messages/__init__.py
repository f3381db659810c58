"""Messages between modules: their fields, their history, and what happens to those that fail."""
