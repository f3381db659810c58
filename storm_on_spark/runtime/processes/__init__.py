"""Processes of the operating system: parents, groups, their output, and servers for development and tests.

Process ids, signals, sockets and files come in; what is known of them goes out. Tuples never pass here. Each file is an
independent tool for other rooms. Begin with the file named after what you need.

    ending/       signals that end a process, and how a command cleans up first
    diagnostics/  labelled output, log levels, breakpoints, metrics and usage
    lines/        authenticated connections between machines
"""
