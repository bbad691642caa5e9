"""Several aligned windows over one stream: each has its own rows, and is fed by a finer one."""
