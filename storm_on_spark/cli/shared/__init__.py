"""Code that commands share: options, errors, terminal, progress and tables."""
