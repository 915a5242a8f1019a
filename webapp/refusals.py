"""The error that refuses a request."""


class Refused(Exception):
    """A request that is not carried out.

    Parameters
    ----------
    code : str
        One word for programs, such as ``plan``.
    message : str
        The rule, then the value, for people.
    """

    def __init__(self, code: str, message: str) -> None:
        message = str(message)  # in the language of whoever asks now, if it is a text to be translated
        super().__init__(message)
        self.code, self.message = code, message
