"""What there is to see: one module for a single run, one for a cluster."""
