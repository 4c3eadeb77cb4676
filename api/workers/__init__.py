"""The processes that answer requests: how many run, how the last ones died, and when dead ones are started again.

`roster` is the policy and the report, without a process. `server` is the web server's parent process, and the only
module that relies on parts of granian that granian does not promise to keep. `companions` keeps the processes running
that work beside them. `placement` keeps each worker to one processor.
"""
