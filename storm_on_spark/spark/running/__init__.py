"""A topology that runs: its query and what belongs to it, why it failed, and how people watch and stop it."""
