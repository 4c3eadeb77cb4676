"""The shapes of what is sent and answered: the public name of `gate.client.api.types`."""

from gate.client.api.types import *
