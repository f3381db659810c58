"""Building and submitting a topology: the builder and its checks, functions as components, the submitter."""
