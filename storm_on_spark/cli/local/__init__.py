"""Commands that run a topology on this machine, or check or show it without running it."""
