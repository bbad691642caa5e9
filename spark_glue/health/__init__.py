"""What ails a query: read from the records of its micro-batches and from how it was set up."""
