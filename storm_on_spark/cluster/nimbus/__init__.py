"""Nimbus: takes topologies in, keeps their code, and, as the leader, decides where their drivers run."""
