"""The kernels, in Cython: numpy buffers in, numpy buffers out; no Arrow, no pandas, no Spark."""
