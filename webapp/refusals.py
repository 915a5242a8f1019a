"""The error that refuses a request."""


class Refused(Exception):
    """A request that is not carried out.

    Parameters
    ----------
    code : str
        One word for programs, such as ``plan``.
    message : str or LookoutError
        The rule, then the value, for people.
    """

    def __init__(self, code: str, message: str) -> None:
        english = getattr(message, "english", "")
        message = str(message)  # in the language of whoever asks now, if it is a text to be translated
        super().__init__(message)
        self.code, self.message = code, message
        self.english = "" if english == message else english

    def document(self) -> dict[str, str]:
        """Return what a client is told; `english` is there if the message is in another language, and known in both."""
        return {"code": self.code, "message": self.message} | ({"english": self.english} if self.english else {})
