#!/usr/bin/env bash
# Takes one decision from its request to its proof: it decides, reports an execution, an outcome and a CRM sync, exports a
# packet, and verifies it offline. Then it changes the packet, and verification fails and says where.
# Its argument is the address of the service, by default http://127.0.0.1:8080.
set -euo pipefail
base=${1:-http://127.0.0.1:8080}
if ! { [ -x .venv/bin/gate ] && [ -r var/demo.key ] && curl -sSf -o /dev/null "$base/livez"; }; then
  echo "Run this in the project's folder while 'make run' is running." >&2
  exit 2
fi
mkdir -p build
key="x-api-key: $(cat var/demo.key)"

fetch() { # file for the response, arguments of curl; prints an error response and exits
  curl -sS --fail-with-body "${@:2}" > "$1" || { cat "$1" >&2 && echo >&2 && exit 1; }
}
post() { # file for the response, path, file with the body, idempotency key
  fetch "$1" "$base$2" -H "$key" -H 'content-type: application/json' -H "x-idempotency-key: $4" -d "@$3"
}
field() { .venv/bin/python -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

order="deal-1042-$(date +%s%N)"
post build/record.json /api/decide data/requests/pricing_exception.json "$order"
decision=$(field build/record.json decision_id)
echo "decided:   $(field build/record.json verdict), $(field build/record.json action)"

# Act only on yes. A real caller would now write the discount into the CRM, and then report it.
[ "$(field build/record.json verdict)" = yes ]
post build/execution.json "/api/decision/$decision/execution" data/requests/execution.json "$order"
echo "execution: $(field build/execution.json execution_status), binding matches: $(field build/execution.json action_binding_match)"
post build/outcome.json "/api/decision/$decision/outcome" data/requests/outcome.json "$order"
echo "outcome:   $(field build/outcome.json outcome_status)"
post build/crm-sync.json "/api/decision/$decision/crm-sync" data/requests/crm-sync.json "$order"
echo "CRM sync:  recorded"

# Export everything into one file. It verifies without the service, against the service's published keys.
fetch build/packet.json "$base/api/decision/$decision/packet?include_input=true" -H "$key"
fetch build/keys.json "$base/api/decision/receipt-keys"
.venv/bin/gate verify-packet build/packet.json --registry build/keys.json

# Forge the outcome, and recompute the packet's own hash.
.venv/bin/python - <<'PYTHON'
import json, pathlib
from gate.encoding.canonical import content_hash

packet = json.loads(pathlib.Path("build/packet.json").read_text())
packet["outcome_records"][0]["outcome_status"] = "failed"
packet["packet_hash"] = content_hash({name: part for name, part in packet.items() if name != "packet_hash"})
pathlib.Path("build/tampered.json").write_text(json.dumps(packet))
PYTHON
if .venv/bin/gate verify-packet build/tampered.json --registry build/keys.json; then exit 1; fi
