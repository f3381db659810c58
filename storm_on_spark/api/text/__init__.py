"""Text for people: wording of messages, tracebacks, HTML for notebooks."""
