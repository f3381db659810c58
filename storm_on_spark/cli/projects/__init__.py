"""Commands for projects: beginning one from a template or an example, and moving one over from streamparse."""
