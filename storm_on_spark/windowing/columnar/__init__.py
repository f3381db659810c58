"""Windows over Arrow record batches."""
