"""Where a model looks: what an output word depends on, and which words attention links."""
