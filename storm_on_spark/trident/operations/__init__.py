"""Operations: what happens to the rows of a batch, one class each, and what users write them with."""
