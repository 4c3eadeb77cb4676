"""The types of requests and responses. This is the public name of `gate.client.api.types`."""

from gate.client.api.types import *
