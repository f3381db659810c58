"""A plan as people and programs read it: text, JSON, Mermaid, HTML."""
