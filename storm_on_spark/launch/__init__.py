"""Code that all commands share: loading a topology and its configuration, and the document about a run."""
