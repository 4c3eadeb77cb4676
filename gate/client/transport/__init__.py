"""Sends requests to the service, with retries, and runs the same flows in threads or in an event loop.

    building        checks and encodes arguments, and builds a call; the generated client.api uses it
    calls           one request, and how its response is read
    endpoint        an operation as a method of a client
    exchange        a call with its retries, as a flow
    flow            the steps of a flow: send, pause, consult, do
    engine          runs flows in the caller's thread; async_engine, in the caller's event loop
    transport       HTTP: a response is complete by its deadline, and of limited size, or an error
    forks           what a forked process must not inherit from its parent

This package does not depend on decisions or guards.
"""
