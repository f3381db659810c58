"""Commands that ask an admin of streams, by themselves and in a shell."""
