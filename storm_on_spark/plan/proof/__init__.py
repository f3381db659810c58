"""The proof that a bolt holds no state, from its bytecode."""
