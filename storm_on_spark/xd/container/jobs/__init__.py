"""Jobs in a container: each step runs in its own process, which ends with the container."""
