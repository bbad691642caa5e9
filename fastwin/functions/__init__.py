"""What users write: aggregate, reduce and process functions, evictors, keyed state."""
