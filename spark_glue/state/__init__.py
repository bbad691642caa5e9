"""State on Spark: the log in the state store, its book, the copies that workers keep, cleaning up."""
