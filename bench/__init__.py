"""Benchmarks: they measure and report, and never judge a time. What they fail for is a wrong answer."""
