"""Commands that come with the glue: the demo, and page views of an access log."""
