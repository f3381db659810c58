"""The checkpoint of a topology: its folder or store, its owner, its state."""
