"""An instance: everything below put together in a home directory, and what its operator does with the whole.

    settings    settings.toml and the environment, read once into one frozen object
    keys        signing keys on disk: created, rotated, retired, compromised
    instance    laying an instance out, opening it, and composing the ledger, the gate and the lifecycle
    advisory    the upstream of the advisory modes, by the settings
    audit       `gate chain check`: the ledger recomputed from its own bytes
    processes   the processes that share one command's work
    fixtures    the facts of fixtures that adapters make
    pilots      those who ask for a pilot: taken, confirmed by a token, listed
    webhooks    the endpoints of webhooks: their key file, their secrets, a test, and one-time events
    histories   the imported past cases of an instance, in its backups
    backup      an instance in one file, and its restore

    checkpoints         signing and keeping checkpoints of every chain
    checkpoint_log      the file that keeps them

The edge of the domain: files, the environment, and the clock enter here.
"""
