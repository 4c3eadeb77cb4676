"""Every operation as a function that returns its `Call`. This is the public name of `gate.client.api.operations`."""

from gate.client.api.operations import *
from gate.client.api.operations import __all__ as __all__
