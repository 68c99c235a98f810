"""Runnable examples of Spangrade. Each one works without a network and ends by itself."""
