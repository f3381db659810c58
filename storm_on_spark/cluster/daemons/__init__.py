"""The daemons Nimbus and supervisor: their parts put together, and the threads that drive them."""
