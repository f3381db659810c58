"""Code that commands share to talk to a cluster: finding it, and showing its answers."""
