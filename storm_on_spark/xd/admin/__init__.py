"""The admin of streams by description: what it is asked for, and what it answers."""
