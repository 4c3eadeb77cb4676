"""What a process of pytest-xdist reports to the one that shows the results: how each test ended.

By itself it sends five messages for each of 11,300 tests: that it begins, that its fixtures passed, how it ended, that
they were taken away, and that it is over. Four are never shown, and sending them took longer than most of the tests.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


class _Short:
    @staticmethod
    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs a test as pytest does, and reports its call, and of its fixtures what did not pass."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def shorten(config: pytest.Config) -> None:
    """Makes the messages of this process short, if it is one of pytest-xdist; `--durations` shows all that there is."""
    if hasattr(config, "workerinput") and config.option.durations is None:
        config.pluginmanager.register(_Short())
