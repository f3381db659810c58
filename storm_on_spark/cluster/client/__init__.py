"""The client of a cluster of Nimbuses."""
