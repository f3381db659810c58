"""What a window holds, in the bolt's key-value state: in slices, so that a micro-batch writes what has changed."""
