"""A Forewarn server for tests: announce maintenance, move the clock, and see what the service under test does."""

from .errors import ForewarnError, ForewarnTimeout
from .kit import Forewarn
from .programs import Program

__all__ = ["Forewarn", "ForewarnError", "ForewarnTimeout", "Program"]
