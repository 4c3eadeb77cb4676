"""The delivery of webhook events, in a separate process next to the service.

    starting    keeps the process running; `gate serve` loads only this
    process     the process itself: `python -m api.webhooks.process`

The process delivers with `gate.services.webhooks`.
"""
