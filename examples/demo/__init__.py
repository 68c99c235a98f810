"""The demo: a small RAG application on a real local model, scored by Spangrade. Start it with `make demo`."""
