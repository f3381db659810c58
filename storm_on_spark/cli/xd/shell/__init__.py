"""The shell: its lines, its commands, and TAB completion at a terminal."""
