"""The graph of a stream program, and the passes over it. Pure: no spout or bolt runs here."""
