"""The HTTP interface for programs: the registry of judges, and the document that describes it."""
