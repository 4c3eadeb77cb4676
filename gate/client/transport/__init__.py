"""How the client reaches the service: one request, its retries, and the same flow run in threads or in an event loop.

    building        arguments checked and encoded, as a call; what is generated in client.api calls it
    calls           one request, and how its answer is read
    endpoint        an operation as a method of a client
    exchange        a call with its retries, as a flow
    flow            what a flow may ask for: send, pause, consult, do
    engine          runs flows in the caller's thread; async_engine, in the caller's event loop
    transport       HTTP: an answer is whole by its deadline, and bounded, or an error
    forks           what a forked process must not take over from its parent

Nothing here knows decisions or guards.
"""
