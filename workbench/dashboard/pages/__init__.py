"""The data that each page loads, and the session that shows it.

- `visit`: a request for a page: its user, its location, and its time
- `routes`: the page of each path
- `session`: a browser's session: asks for pages, shows them, and does what the forms say
- `fields`: a page's filters and forms as Panel's widgets
- `looks`: Panel's components in the dashboard's colors

- `decided`: decisions: a list, held decisions, and one decision
- `drafting`: drafts: their list, the studio, cases, revisions, comparing
- `reviews`: reviews of held decisions: their queue, and one of them as a case
- `migrations`: migrations: their list, one of them, a draft that is to become one

The other modules are one page each: overview, policy, anomalies, anomaly, benchmarks, and histories.
"""
