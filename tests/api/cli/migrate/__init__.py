"""Tests of `gate migrate` at an instance: proving, proposing, deciding, routing, and reading about it."""
