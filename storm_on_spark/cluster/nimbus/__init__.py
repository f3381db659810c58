"""Nimbus: accepts topologies, keeps their code, and, as the leader, decides where their drivers run."""
