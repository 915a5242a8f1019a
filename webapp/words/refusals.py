"""The error that refuses a request."""

from typing import Any

from django.utils.functional import Promise

from streaming.errors import LookoutError


class Refused(Exception):
    """A request that is not carried out.

    Parameters
    ----------
    code : str
        One word for programs, such as ``plan``.
    message : str, Promise or LookoutError
        The rule, then the value, for people.
    more
        Further values for programs.
    """

    def __init__(self, code: str, message: str | Promise | LookoutError, **more: Any) -> None:
        english = getattr(message, "english", "")
        told = str(message)  # in the language of whoever asks now, if it is a text to be translated
        super().__init__(told)
        self.code, self.message, self.more = code, told, more
        self.english = "" if english == told else english

    def document(self) -> dict[str, Any]:
        """Return what a client is told; `english` is there if the message is in another language, and known in both."""
        told = {"code": self.code, "message": self.message} | self.more
        return told | ({"english": self.english} if self.english else {})
