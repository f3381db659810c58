"""The command line `storm-spark`: one module per command.

The answer goes to standard output; progress, warnings and errors go to standard error. Exit codes: 0 done, 1 the
topology failed, 2 bad usage or an invalid topology, 130 stopped at once by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""
