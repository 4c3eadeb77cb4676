"""The processes that answer requests: their number, their deaths, and their restarts.

`roster` has the restart policy and the report, without processes. `server` is the web server's parent process. Only
this module relies on undocumented parts of `granian`. `companions` keeps the processes next to the workers running.
`placement` binds each worker to one processor.
"""
