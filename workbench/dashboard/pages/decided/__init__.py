"""The pages of decisions: `decisions` (the list), `held`, `decision` (one of them), and `whatif`."""
