"""Downloads: one at a time for each user, none holds up a sign-in, and each is of what its page shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

import pytest

from tests.workbench.dashboard.serving import Site
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.ledger import LedgerReads
from workbench.dashboard.store.slices import Slice
from workbench.dashboard.store.store import Store

pytestmark = pytest.mark.heavy

# More than asyncio has threads of its own on a machine like those that test.
MANY = 40


def test_one_download_at_a_time_for_a_user_and_none_holds_up_anybody_else(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = Event()

    def packet_file(self: LedgerReads, scope_id: str, decision_id: str) -> bytes:
        assert go_on.wait(30)
        return b"{}"

    monkeypatch.setattr(LedgerReads, "packet_file", packet_file)
    ana = site.browser("ana")
    url = "/download/packet?scope=acme&id=dec_x"
    with ThreadPoolExecutor(MANY) as threads:
        asked = [threads.submit(ana.get, url, timeout=30) for _ in range(MANY)]
        try:
            finished = as_completed(asked, 30)
            refused = [next(finished).result() for _ in range(MANY - 1)]
            ben = site.browser("ben")
            assert ben.get("/held?scope=acme").status_code == 200
            assert ben.get("/download/record?scope=acme&id=dec_x").status_code == 404
        finally:
            go_on.set()
    assert {each.status_code for each in refused} == {429}
    assert "Your previous download is not finished." in refused[0].text
    assert [each.result().content for each in asked if each.result().status_code == 200] == [b"{}"]
    # Its turn is over.
    assert ana.get(url).status_code == 200


@pytest.mark.parametrize(
    ("given", "of"),
    [
        ("", Slice()),
        ("&version=v1&verdict=no&clock=occurred", Slice("v1", "no", clock="occurred")),
        # What no page writes chooses nothing.
        ("&verdict=maybe&clock=local", Slice()),
    ],
)
def test_a_notebook_is_of_the_decisions_that_its_page_looks_at(
    site: Site, monkeypatch: pytest.MonkeyPatch, given: str, of: Slice
) -> None:
    asked: list[Slice] = []

    def notebook(self: Store, access: Access, policy_id: str, anomaly_id: str, of: Slice) -> bytes:
        asked.append(of)
        return b"{}"

    monkeypatch.setattr(Store, "notebook", notebook)
    monkeypatch.setattr(Store, "dry_run", notebook)
    for what in ("notebook", "dry-run"):
        assert site.browser("ana").get(f"/download/{what}?scope=acme&policy=p&anomaly=ano_1{given}").status_code == 200
    assert asked == [of, of]
