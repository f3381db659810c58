"""The passes of the compiler: one function in one file, from a graph to another. `plan.compile` puts them in order."""
