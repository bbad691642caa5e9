"""Keys: hashes, dense ids, the bytes of composite keys, elements in order of their keys."""
