"""What a spec is made of: the builder, checks, endings, panes, DDL, descriptions. WindowSpec is in run."""
