"""From a graph of operations on batches to a topology: the bolt that knows when a batch is complete."""
