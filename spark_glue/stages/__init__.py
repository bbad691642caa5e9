"""What runs in Spark's tasks: pack, operator, unpack, and batch frames."""
