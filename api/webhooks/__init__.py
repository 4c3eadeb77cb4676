"""Events are delivered beside the service, in a process of their own.

    starting    keeping the process running; loaded by `gate serve`, without what delivers
    process     the process itself: `python -m api.webhooks.process`

What it delivers with is `gate.services.webhooks`.
"""
