"""HyperLogLog: registers, the accumulator over rows, and the string that Redis keeps."""
