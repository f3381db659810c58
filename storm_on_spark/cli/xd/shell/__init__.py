"""The shell: its lines, its commands, and what TAB proposes at a terminal."""
