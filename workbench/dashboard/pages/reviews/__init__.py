"""Reviews of held decisions: their queue, and one of them as a case."""
