"""Modules of jobs: each is a step, a function with typed options that runs in its own process."""
