"""Modules that reach what is outside the stream: files, HTTP, Kafka, databases."""
