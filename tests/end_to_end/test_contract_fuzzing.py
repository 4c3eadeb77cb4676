"""Requests generated from the OpenAPI document that a server publishes, valid and invalid in every place it names: each
answer is one that the document describes, and records are made by acknowledged decisions alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import httpx

from tests.end_to_end.site import GATE, PATIENCE, Site, wait_until
from tests.end_to_end.support import ROOT
from tests.support.torture import report, size

COUNTED = "/api/decision/policies/<policy_id>/effectiveness"

# A request that is valid for its schema can be refused for what no schema says, such as an advisory mode, which is
# answered with 503. Server errors are counted below, from the log. And the key is sent with every request.
LEFT_OUT = "positive_data_acceptance,not_a_server_error,missing_required_header"


def test_every_answer_is_one_that_the_document_describes(tmp_path: Path) -> None:
    site = Site(tmp_path / "home", None)
    key = site.create_key("acme")
    token = (site.home / "metrics.token").read_text().strip()
    with site.serving(1, "--analytics") as server:
        options = (
            f"--no-color --phases=examples,coverage,fuzzing --max-examples={size(3, 300)} --generation-deterministic "
            f"--continue-on-failure --warnings=off --exclude-checks={LEFT_OUT}"
        )
        waited: list[int] = []

        def reports() -> bool:
            path = COUNTED.replace("<policy_id>", "pricing_exception")
            answer = httpx.get(f"{server.url}{path}", headers={"x-api-key": key}, timeout=PATIENCE, trust_env=False)
            waited.append(answer.status_code)
            return answer.is_success

        # What counts for reports starts beside the workers, and later than they do.
        wait_until(reports)
        headers = ["--header", f"x-api-key: {key}", "--header", f"x-metrics-token: {token}"]
        fuzzer = Path(GATE).with_name("schemathesis")
        done = subprocess.run(
            [fuzzer, "run", f"{server.url}/openapi.json", *options.split(), *headers],
            cwd=tmp_path,
            env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.end_to_end.fuzzing_hooks", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        server.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    requests = [json.loads(line) for line in server.lines if '"event":"request"' in line]
    generated = int(re.findall(r"(\d+) generated", done.stdout)[0])
    # A batch says how many it created.
    created = sum(request.get("created", request.get("idempotency") == "created") for request in requests)
    assert len(site.chain("acme")) == created > 0
    assert {request["status"] for request in requests} >= {200, 400, 401, 404, 405, 422}
    failed = Counter((request["route"], request["error"]) for request in requests if request["status"] >= 500)
    assert failed.pop((COUNTED, "SVC_REPORT_UNAVAILABLE"), 0) == waited.count(503)
    assert failed.keys() == {("/api/decide", "SVC_ADVISORY_UNCONFIGURED")}
    assert sum((request["route"], request["status"]) == (COUNTED, 200) for request in requests) > 1
    report(f"{generated} requests generated, {created} records made")
