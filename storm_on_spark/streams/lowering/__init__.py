"""From a graph to a topology: the bolts that execute operations, and how they are connected."""
