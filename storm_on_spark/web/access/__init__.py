"""Who may see the pages, and who may change something: logins, sessions, roles, and what a browser must prove."""
