"""The three operators and the protocol that they share."""
