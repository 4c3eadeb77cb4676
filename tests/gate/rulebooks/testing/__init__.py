"""Tests of gate.rulebooks.testing."""
