#!/usr/bin/env bash
# One decision from its request to its proof: decide, execution, outcome, CRM sync, packet, offline verification; then the
# packet is changed, and verification fails and says where. Takes the service's address, http://127.0.0.1:8080 by default.
set -euo pipefail
base=${1:-http://127.0.0.1:8080}
if ! { [ -x .venv/bin/gate ] && [ -r var/demo.key ] && curl -sSf -o /dev/null "$base/livez"; }; then
  echo "Run this in the project's folder, while make run runs." >&2
  exit 2
fi
mkdir -p build
key="x-api-key: $(cat var/demo.key)"

fetch() { # file for the answer, what curl takes; an error is shown, and ends the script
  curl -sS --fail-with-body "${@:2}" > "$1" || { cat "$1" >&2 && echo >&2 && exit 1; }
}
post() { # file for the answer, path, file with the body, retry handle
  fetch "$1" "$base$2" -H "$key" -H 'content-type: application/json' -H "x-idempotency-key: $4" -d "@$3"
}
member() { .venv/bin/python -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

order="deal-1042-$(date +%s%N)"
post build/record.json /api/decide data/requests/pricing_exception.json "$order"
decision=$(member build/record.json decision_id)
echo "decided:   $(member build/record.json verdict), $(member build/record.json action)"

# The caller acts on yes alone. Here the discount would be written into the CRM; then it is reported.
[ "$(member build/record.json verdict)" = yes ]
post build/execution.json "/api/decision/$decision/execution" data/requests/execution.json "$order"
echo "execution: $(member build/execution.json execution_status), the decision's target: $(member build/execution.json action_binding_match)"
post build/outcome.json "/api/decision/$decision/outcome" data/requests/outcome.json "$order"
echo "outcome:   $(member build/outcome.json outcome_status)"
post build/crm-sync.json "/api/decision/$decision/crm-sync" data/requests/crm-sync.json "$order"
echo "CRM sync:  recorded"

# Everything in one file, which verifies without the service, against its published keys.
fetch build/packet.json "$base/api/decision/$decision/packet?include_input=true" -H "$key"
fetch build/keys.json "$base/api/decision/receipt-keys"
.venv/bin/gate verify-packet build/packet.json --registry build/keys.json

# Someone turns the outcome into a failure, and mends the packet's own hash.
.venv/bin/python - <<'PYTHON'
import json, pathlib
from gate.encoding.canonical import content_hash

packet = json.loads(pathlib.Path("build/packet.json").read_text())
packet["outcome_records"][0]["outcome_status"] = "failed"
packet["packet_hash"] = content_hash({name: part for name, part in packet.items() if name != "packet_hash"})
pathlib.Path("build/tampered.json").write_text(json.dumps(packet))
PYTHON
if .venv/bin/gate verify-packet build/tampered.json --registry build/keys.json; then exit 1; fi
