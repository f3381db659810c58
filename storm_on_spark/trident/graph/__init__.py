"""The passes over the graph that are about batches: who shares a coordinator."""
