"""Placeholder."""


class Activity: ...


def activity(*a): ...
