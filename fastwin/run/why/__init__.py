"""Answers to why: what a stream knows of its windows and rows, now and in the past, and how it is told."""
