"""Commands that run a topology on this machine, or check and show it without running it."""
