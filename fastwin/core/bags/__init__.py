"""What a row keeps of values where it has no fixed size: sets, counts by value, lists."""
