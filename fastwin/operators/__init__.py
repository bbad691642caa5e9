"""The operators, and the protocol that they share."""
