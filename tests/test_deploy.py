"""What stands in deploy/ fits the service: its settings, options, paths and metrics, and the reference in the docs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import httpx
import pytest
import yaml
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from typer.main import get_command

from api.app import DRAIN_SECONDS
from api.cli import serve
from api.errors import codes
from api.http import readiness
from api.routes.batches import MAX_BATCH_BODY
from api.workers.roster import Roster, workers_part
from gate.instance.instance import Instance
from gate.instance.settings import Settings
from tests.end_to_end.site import Site, wait_until
from tests.end_to_end.support import ROOT, anchors
from tests.support.postgres import Postgres
from tests.support.samples import sample_request

DEPLOY: Final = ROOT / "deploy"
SETTINGS: Final = {f"GATE_{name.upper()}" for name in Settings.__struct_fields__}
# What Prometheus itself adds to what it scrapes.
SCRAPED: Final = {"up": {"job", "instance"}}
TARGET: Final = {"job", "instance"}


def document(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def rules() -> list[dict[str, Any]]:
    (group,) = document("prometheus/alerts.yaml")["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def serve_options() -> set[str]:
    return {name for option in get_command(serve.app).params for name in option.opts + option.secondary_opts}


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a container file, each in one line without its comments."""
    text = "\n".join(line for line in (DEPLOY / name).read_text().splitlines() if not line.startswith("#"))
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines if line]


def health_command() -> list[str]:
    """What the container's health check runs."""
    ((_, check),) = [found for found in instructions("Containerfile") if found[0] == "HEALTHCHECK"]
    command: list[str] = yaml.safe_load(check.partition("CMD ")[2])
    return command


class TestAlerts:
    @pytest.fixture
    def exported(
        self, client: FlaskClient, instance: Instance, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> dict[str, set[str]]:
        """The names of what the service exports, each with its labels, after requests of every kind."""
        monkeypatch.setattr(readiness, "_workers", lambda: workers_part(Roster(2, 0.0).facts, 1.0))
        client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
        client.post("/api/decide", json=sample_request())
        client.get("/nothing")
        token = instance.settings.metrics_token.read_text().strip()
        text = client.get("/metrics", headers={"x-metrics-token": token}).get_data(as_text=True)
        found: dict[str, set[str]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
        return found

    @pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
    def test_a_rule_asks_for_what_is_exported(self, exported: dict[str, set[str]], rule: dict[str, Any]) -> None:
        known = exported | SCRAPED
        expression = re.sub(r"\[[^]]*\]", "", rule["expr"])
        selectors = re.findall(r"\b(up|gate_\w+)\{([^}]*)\}", expression)
        # Every name stands with labels, at the least that of the job.
        assert len(re.findall(r"\b(?:up|gate_\w+)\b", expression)) == len(selectors) > 0
        for name, labels in selectors:
            assert name in known, name
            assert set(re.findall(r"(\w+)=", labels)) <= known[name] | TARGET, name
        for grouping in re.findall(r"by \(([^)]*)\)", expression):
            for label in re.split(r", ?", grouping):
                assert label in TARGET or any(label in known[name] for name, _ in selectors), label

    @pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
    def test_a_rule_says_what_is_wrong_and_what_to_do(self, rule: dict[str, Any]) -> None:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert re.fullmatch(r"\d+m", rule["for"])
        assert {"summary", "description", "check", "fix", "runbook"} == rule["annotations"].keys()
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert anchor == rule["alert"].lower()
        assert anchor in anchors((ROOT / page).read_text())

    def test_the_scrape_sends_the_token_and_reads_these_rules(self) -> None:
        scrape = document("prometheus/scrape.yaml")
        (job,) = scrape["scrape_configs"]
        assert scrape["rule_files"] == ["alerts.yaml"]
        assert job["http_headers"].keys() == {"x-metrics-token"}
        assert all(f'job="{job["job_name"]}"' in rule["expr"] for rule in rules())


class TestContainer:
    def test_it_copies_what_is_there_and_the_build_may_see(self) -> None:
        copied = [rest.split()[:-1] for name, rest in instructions("Containerfile") if name == "COPY"]
        sources = {source for names in copied for source in names if "--from=build" not in names}
        allowed = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
        assert {"gate", "api", "schemas", "data"} <= sources
        assert all((ROOT / source).exists() for source in sources)
        assert {f"!{source}" for source in sources} == {line for line in allowed if line.startswith("!")}
        assert "*" in allowed

    def test_it_serves_with_options_that_there_are_as_nobody_special(self) -> None:
        found = dict(instructions("Containerfile"))
        command = yaml.safe_load(found["CMD"])
        assert command[:2] == ["gate", "serve"]
        assert {word for word in command if word.startswith("--")} <= serve_options()
        assert found["USER"] == "10001:10001"
        assert found["STOPSIGNAL"] == "SIGTERM"
        assert found["VOLUME"] == command[command.index("--home") + 1]

    @pytest.mark.heavy
    def test_its_health_check_tells_a_ready_server_from_none(self, tmp_path: Path) -> None:
        def healthy(url: str) -> bool:
            port = url.rpartition(":")[2]
            words = [sys.executable, *(word.replace("8080", port) for word in health_command()[1:])]
            return subprocess.run(words, capture_output=True, check=False, timeout=60).returncode == 0

        site = Site(tmp_path / "home", None)
        with site.serving(1) as server:
            assert healthy(server.url)
            ledger = site.home / "ledger.db"
            ledger.rename(ledger.with_name("away"))
            assert httpx.get(f"{server.url}/livez", trust_env=False).status_code == 200
            _wait_for_status(server.url, 503)
            assert not healthy(server.url)
        assert not healthy(server.url)


class TestCompose:
    def test_files_and_settings_that_it_names_exist(self) -> None:
        compose = document("compose.yaml")
        gate = compose["services"]["gate"]
        assert {name for name in gate["environment"] if name.startswith("GATE_")} <= SETTINGS
        build = gate["build"]
        context = DEPLOY / build["context"]
        assert (context / build["dockerfile"]).is_file()
        for volume in _volumes(compose):
            assert volume in compose["volumes"] or (DEPLOY / volume).is_file(), volume

    def test_every_secret_is_explained_used_and_kept_out_of_the_repository(self) -> None:
        compose = document("compose.yaml")
        used = {name for service in compose["services"].values() for name in service["secrets"]}
        assert used == compose["secrets"].keys()
        page = (ROOT / "docs" / "guides" / "deploy-in-a-container.md").read_text()
        for secret in compose["secrets"].values():
            assert f"deploy/{secret['file']}" in page
            assert secret["file"].startswith("secrets/")
        assert (DEPLOY / ".gitignore").read_text() == "/secrets/\n"

    def test_every_service_gives_up_what_it_does_not_need(self) -> None:
        for service in document("compose.yaml")["services"].values():
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
            assert "no-new-privileges:true" in service["security_opt"]
            assert {"mem_limit", "pids_limit", "restart"} <= service.keys()

    def test_only_the_proxy_is_reached_from_outside(self) -> None:
        compose = document("compose.yaml")
        assert [name for name, service in compose["services"].items() if "ports" in service] == ["proxy"]
        assert compose["networks"]["inner"]["internal"] is True

    def test_its_address_of_the_ledger_takes_the_password_from_the_file(
        self, tmp_path: Path, postgres: Postgres
    ) -> None:
        url = document("compose.yaml")["services"]["gate"]["environment"]["GATE_DATABASE_URL"]
        with _role_with_password(postgres) as directory:
            site = Site(tmp_path / "home", _at(url, directory, tmp_path / "pgpass"))
            (tmp_path / "pgpass").write_text("*:5432:gate:gate:right\n")
            (tmp_path / "pgpass").chmod(0o400)
            site.create_key("acme")
            (tmp_path / "pgpass").unlink()
            (tmp_path / "pgpass").write_text("*:5432:gate:gate:wrong\n")
            (tmp_path / "pgpass").chmod(0o400)
            refused = subprocess.run(
                site.command("scopes", "list"), capture_output=True, text=True, check=False, timeout=60
            )
        assert refused.returncode == 2
        assert "DATABASE_UNREACHABLE" in refused.stderr


class TestProxy:
    CONFIG: Final = (DEPLOY / "nginx" / "nginx.conf").read_text()

    @pytest.mark.parametrize("path", ["/metrics", "/api/proof-metrics", "/api/pilot-export", "/livez", "/readyz"])
    def test_it_shows_nobody_what_is_for_operators(self, path: str, client: FlaskClient) -> None:
        assert re.search(rf"location = {re.escape(path)} {{ return 404 ", self.CONFIG)
        # A path that the service does not have needs no rule.
        assert client.get(path).status_code != 404

    @pytest.mark.heavy
    def test_it_passes_on_no_header_but_those_that_the_service_reads(self) -> None:
        assert "proxy_pass_request_headers off;" in self.CONFIG
        passed = {name.lower() for name in re.findall(r"proxy_set_header (\S+) \$http", self.CONFIG)}
        # Its own word, whatever the caller sent.
        assert "proxy_set_header x-forwarded-for $remote_addr;" in self.CONFIG
        passed.add("x-forwarded-for")
        sources = "".join(file.read_text() for file in (ROOT / "api").rglob("*.py"))
        read = {*re.findall(r'request\.headers\.get\("([\w-]+)"', sources)}
        read |= {*re.findall(r'"([\w-]+)" in request\.headers', sources)}
        read |= {name.lower().replace("_", "-") for name in re.findall(r'"HTTP_([A-Z_]+)"', sources)}
        # Only operators send the token, and no key is taken from `authorization`, which brings a hint. nginx says
        # itself how long a body is, where it comes from and which host it is for, and answers `expect` itself. No route
        # is a web socket, which `connection` and `upgrade` would ask for.
        by_nginx = {"transfer-encoding", "expect", "host", "connection", "upgrade"}
        assert read - passed == {"x-metrics-token", "authorization"} | by_nginx
        assert "proxy_set_header x-forwarded-for $remote_addr;" in self.CONFIG
        # What clients of the Model Context Protocol send.
        assert {"accept", "origin", "mcp-protocol-version", "mcp-method", "mcp-name"} <= passed
        # What a published document is asked for with, once it is known.
        assert "if-none-match" in passed

    @pytest.mark.parametrize("path", ["/api/sandbox/decide", "/api/pilot", "/api/pilot/confirm"])
    def test_what_needs_no_key_has_the_stricter_rate(self, path: str, client: FlaskClient) -> None:
        ((pattern, rules),) = [
            (pattern, rules)
            for pattern, rules in re.findall(r"location ~ (\S+) \{(.*?)\n        \}", self.CONFIG, flags=re.DOTALL)
            if re.search(pattern, path)
        ]
        assert "limit_req zone=open " in rules, pattern
        assert client.post(path).status_code == 400

    def test_a_batch_may_be_as_large_as_the_service_takes_it(self) -> None:
        (rules,) = re.findall(r"location = /api/decide/batch \{(.*?)\n        \}", self.CONFIG, flags=re.DOTALL)
        assert f"client_max_body_size {MAX_BATCH_BODY // 1024**2}m;" in rules

    def test_the_service_believes_the_proxy_about_addresses_and_nobody_else(self) -> None:
        compose = document("compose.yaml")
        address = compose["services"]["proxy"]["networks"]["inner"]["ipv4_address"]
        assert json.loads(compose["services"]["gate"]["environment"]["GATE_TRUSTED_PROXIES"]) == [address]
        ((config,),) = [network["ipam"]["config"] for network in compose["networks"].values() if "ipam" in network]
        assert ip_address(address) in ip_network(config["subnet"])
        # Nothing else is given that address.
        assert ip_address(address) not in ip_network(config["ip_range"])

    def test_its_errors_are_those_of_the_service(self) -> None:
        known = {(json.loads(body)["error"], int(status)) for status, body in _answers(self.CONFIG)}
        assert len(known) == 4
        assert {(code, codes()[code][0]) for code, _ in known} == known

    def test_it_reaches_the_service_of_the_compose_file(self) -> None:
        compose = document("compose.yaml")
        ((host, port),) = re.findall(r"server (\w+):(\d+);", self.CONFIG)
        assert host in compose["services"]
        assert ("EXPOSE", port) in instructions("Containerfile")
        (published,) = compose["services"]["proxy"]["ports"]
        assert f"listen {published.partition(':')[2]} ssl;" in self.CONFIG
        secrets = set(re.findall(r"/run/secrets/(\w+);", self.CONFIG))
        assert secrets == set(compose["services"]["proxy"]["secrets"])


class TestUnit:
    UNIT: Final = (DEPLOY / "decision-gate.service").read_text()
    DROP_IN: Final = (DEPLOY / "decision-gate-postgresql.conf").read_text()

    def test_it_starts_the_service_with_options_that_there_are(self) -> None:
        (start,) = re.findall(r"^ExecStart=(.*)$", self.UNIT, flags=re.MULTILINE)
        words = shlex.split(start)
        assert (Path(words[0]).name, words[1]) == ("gate", "serve")
        assert {word for word in words if word.startswith("--")} <= serve_options()
        (state,) = re.findall(r"^StateDirectory=(.*)$", self.UNIT, flags=re.MULTILINE)
        assert words[words.index("--home") + 1] == f"/var/lib/{state}"

    def test_it_sets_only_settings_that_there_are(self) -> None:
        named = set(re.findall(r"\b(GATE_\w+)=", self.UNIT + self.DROP_IN))
        assert {"GATE_BASE_URL", "GATE_DATABASE_URL"} == named
        assert named <= SETTINGS

    def test_reports_are_computed_where_memory_is_never_written_and_executed(self) -> None:
        assert "MemoryDenyWriteExecute=yes" in self.UNIT
        environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", self.UNIT, flags=re.MULTILINE))
        code = """
        import ctypes
        # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN; what systemd asks the kernel for.
        if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0:
            print("no MDWE")
            raise SystemExit
        import polars
        print(polars.DataFrame({"count": [1, 2]}).lazy().sum().collect().item())
        """
        command = [sys.executable, "-c", dedent(code)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        if done.stdout == "no MDWE\n":
            pytest.skip("Linux has PR_SET_MDWE since 6.3")
        assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr

    def test_it_waits_longer_than_requests_in_flight_are_given(self) -> None:
        (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", self.UNIT, flags=re.MULTILINE)
        grace = document("compose.yaml")["services"]["gate"]["stop_grace_period"]
        assert min(int(seconds), int(grace.removesuffix("s"))) > DRAIN_SECONDS
        assert "KillMode=mixed" in self.UNIT


def _wait_for_status(url: str, status: int) -> None:
    wait_until(lambda: httpx.get(f"{url}/readyz", trust_env=False, timeout=30).status_code == status)


def _volumes(compose: dict[str, Any]) -> Iterator[str]:
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            yield volume.partition(":")[0]


@contextmanager
def _role_with_password(postgres: Postgres) -> Iterator[Path]:
    """A role and a database `gate` that the password `right` opens; the folder of the server's socket."""
    ((file,),) = postgres.execute("SHOW hba_file")
    hba = Path(file)
    before = hba.read_text()
    postgres.execute("CREATE ROLE gate LOGIN PASSWORD 'right'")
    postgres.execute("CREATE DATABASE gate OWNER gate")
    hba.write_text(f"local gate gate scram-sha-256\n{before}")
    postgres.execute("SELECT pg_reload_conf()")
    try:
        yield hba.parent
    finally:
        hba.write_text(before)
        postgres.execute("SELECT pg_reload_conf()")
        postgres.execute("DROP DATABASE gate WITH (FORCE)")
        postgres.execute("DROP ROLE gate")


def _at(url: str, directory: Path, passfile: Path) -> str:
    """The same URL for a server on a socket, and with its password's file elsewhere."""
    return url.replace("@database:5432/", "@/").replace("/run/secrets/pgpass", f"{passfile}&host={directory}")


def _answers(config: str) -> Iterator[tuple[str, str]]:
    for status, body in re.findall(r"return (\d+) '(.*)';", config):
        yield status, body.replace("$unclear", "")
    ((name, body),) = re.findall(r"set (\$\w+) '(.*)';", config)
    assert f"return 404 {name};" in config
    yield "404", body
