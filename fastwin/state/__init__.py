"""State: how an operator's rows become bytes (chunks), which bytes go together, and what may read them."""
