"""Jobs in the admin: which step comes next, and what became of those that ran."""
