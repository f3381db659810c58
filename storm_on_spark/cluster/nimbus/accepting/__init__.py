"""Accepting topologies: uploads that wait, the steps of a submission, and where the checkpoint will be."""
