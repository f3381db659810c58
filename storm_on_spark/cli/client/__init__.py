"""Code that commands share to ask a cluster: where it is, and what its answers become."""
