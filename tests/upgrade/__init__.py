"""Instances that earlier releases made: every later head opens, upgrades, verifies and replays them.

README.md describes the folders, and how a release adds its own.
"""
