"""What the demo asks. The support pages answer the first eight; the last two they do not."""

from __future__ import annotations

QUESTIONS: tuple[str, ...] = (
    "How many days do I have to return a lamp?",
    "How much does express shipping cost?",
    "How long is the warranty?",
    "How long does the Wander lamp run at full brightness?",
    "How do I pair my lamp with the app?",
    "Can I get my money back for a gift card?",
    "Is support open on Sunday?",
    "What discount do students get?",
    "Who is the chief executive of Lumen Lane?",
    "Can I use the lamp under water?",
)
