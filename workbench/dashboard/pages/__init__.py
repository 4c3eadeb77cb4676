"""What each page loads, and the session that shows it.

visit         who asks for which page, and when
routes        the page of each path
session       a browser's session: asks for pages, shows them, and does what the forms say
fields        a page's filters and forms as Panel's widgets
looks         Panel's components in the dashboard's colours
overview      all policies of a scope
policy        one policy
anomalies     what is anomalous, over all policies
anomaly       one anomaly, and dismissing it
benchmarks    a policy beside others
decisions     a search
decision      one decision's story
held          what waits for review
"""
