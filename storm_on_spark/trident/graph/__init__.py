"""The passes over the graph that are about batches: which spouts share a coordinator."""
