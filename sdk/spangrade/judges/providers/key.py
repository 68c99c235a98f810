"""An API key: text, or a file that holds it and may change while we run. Never shown."""

from pathlib import Path
from typing import Final

from spangrade.errors import JudgeError

_MAX_BYTES: Final = 65_536


class Key:
    """The key of an endpoint; ``repr`` does not have it.

    Args:
        text: the key.
        file: path of a file that holds it, where no text is given; read again when the file has changed, as mounted
            secrets do.

    Raises:
        JudgeError: kind configuration, for a text that no HTTP header takes.
    """

    def __init__(self, text: str | None = None, file: str | None = None) -> None:
        self._text = checked(text)
        self._file = Path(file) if file and self._text is None else None
        self._read: tuple[tuple[int, int, int], str | None] | None = None

    def __repr__(self) -> str:
        return f"Key(file={str(self._file)!r})" if self._file is not None else f"Key({'set' if self._text else 'none'})"

    def value(self) -> str | None:
        """The key as it is now; None without one.

        Raises:
            JudgeError: kind configuration, when the file cannot be read or holds no key.
        """
        if self._file is None:
            return self._text
        try:
            found = self._file.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            read = self._read
            if read is None or read[0] != stamp:
                with self._file.open(encoding="utf-8") as file:
                    read = self._read = (stamp, checked(file.read(_MAX_BYTES)))
        except (OSError, UnicodeDecodeError) as fault:
            raise JudgeError(
                "configuration", f"the judge's key file {str(self._file)!r} cannot be read: {type(fault).__name__}"
            ) from None
        if read[1] is None:
            raise JudgeError("configuration", f"the judge's key file {str(self._file)!r} is empty")
        return read[1]

    def hide(self, text: str) -> str:
        """``text`` without the key."""
        for key in (self._text, self._read[1] if self._read is not None else None):
            if key:
                text = text.replace(key, "[key]")
        return text


def checked(text: str | None) -> str | None:
    """The key without blanks around it; None for no key.

    Raises:
        JudgeError: kind configuration, for one that no HTTP header takes.
    """
    text = (text or "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isprintable() or " " in text:
        # Said here without the key: the HTTP layer would name it in its own error.
        raise JudgeError("configuration", "the judge's API key holds characters that no HTTP header takes")
    return text
