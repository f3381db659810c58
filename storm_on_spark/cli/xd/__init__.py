"""Commands that ask an admin of streams, on the command line and in a shell."""
