"""Modules of jobs: each is a step, a function with typed options that runs in a process of its own."""
