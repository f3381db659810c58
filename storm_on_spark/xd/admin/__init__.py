"""The admin of streams by description: it takes requests, places modules on containers, and answers."""
