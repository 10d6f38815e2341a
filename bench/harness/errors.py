"""The two ways a run ends early or badly."""


class Unusable(Exception):
    """The run cannot start or go on: a program is missing, a server does not start. Exit status 2."""


class WrongAnswer(Exception):
    """A server answered wrongly or failed under load. The run goes on and ends with exit status 1."""
