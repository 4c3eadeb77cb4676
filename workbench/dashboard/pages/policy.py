"""policy."""

from workbench.dashboard.views.failure import unforeseen


def load(store, visit):
    return unforeseen(visit.location)


def act(store, visit, form, note):
    pass
