"""Operations on the values of a stream, one class each. Pure: values and state in, values out."""
