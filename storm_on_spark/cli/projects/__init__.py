"""Commands for projects: starting one from a template or an example, and migrating one from streamparse."""
