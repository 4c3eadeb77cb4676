"""The pages of the `gate` command."""
