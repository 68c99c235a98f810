"""The spool: what the agent has acknowledged and not yet handed on, durable on disk."""
