"""Jobs in the admin: which step comes next, and how the previous ones ended."""
