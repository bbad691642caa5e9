"""What is known when apply() is called: job, types, key groups, what Catalyst tells, chaining."""
