"""Streams that are read and packed in Python, without rows in the JVM."""
