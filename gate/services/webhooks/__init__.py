"""Events delivered to endpoints over HTTPS, as the Standard Webhooks specification says (standardwebhooks.com).

- `secrets`: the secret of an endpoint, derived from the instance's key, and the headers that it signs
- `addresses`: the URLs that endpoints may have, and the addresses that connections may go to
- `retries`: when a failed delivery is tried again, and when the gate gives up
- `connection`: a connection to an address that was checked
- `transport`: one request, and its answer within bounds
- `lanes`: the order of one endpoint's deliveries: one subject at a time, in order
- `deliverer`: every endpoint's outbox, delivered round by round
"""
