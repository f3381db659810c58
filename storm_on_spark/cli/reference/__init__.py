"""Commands about configuration and about the commands themselves: keys, the schema of `--json`, completion, manual."""
