"""``spangrade explain``: what evaluators see of a trace, and why."""
