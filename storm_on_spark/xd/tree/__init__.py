"""ZooKeeper's tree of an XD cluster: its nodes, a session, and a copy in memory that follows it."""
