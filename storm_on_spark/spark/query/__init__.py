"""The streaming query: source, operators and sink, and how far each micro-batch reaches."""
