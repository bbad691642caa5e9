"""Windows, and the assigners that say which of them an element belongs to. Flink's names."""
