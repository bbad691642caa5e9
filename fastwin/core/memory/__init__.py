"""What all kernels share: checks of arrays, a hash index, bits, 128-bit integers, sorting, memory."""
