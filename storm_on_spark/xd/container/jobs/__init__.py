"""Jobs in a container: a step runs in a process of its own, which ends with its container."""
