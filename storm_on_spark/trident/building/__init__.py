"""The classes that users call: `TridentTopology` and streams."""
