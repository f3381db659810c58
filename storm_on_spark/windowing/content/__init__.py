"""The contents of a window, in the bolt's key-value state: in slices, so that a micro-batch writes only changes."""
