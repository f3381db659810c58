"""From `emit` to chunks: routing, boxes, encoding."""
