# SPDX-License-Identifier: LGPL-3.0-or-later
"""Takes secrets out of texts."""
import re

REMOVED = "(removed)"

# key = VALUE, secret_access_key: VALUE and the like, also over a line's end.
NAMED = re.compile(
    r"(\b(?:key|keyfile|\w*(?:secret|passw|passphrase|token)\w*)"
    r"[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s;,\"'}]+)", re.I)

# A cephx key is base64: 28 bytes of an AES-128 key, 44 of an AES-256 key.
CEPHX = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{37,}={1,2}")

# A key of Handle_Keys: 32 bytes in hexadecimal.
HANDLE_KEY = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{64}(?![0-9A-Fa-f])")

# rados://USER:PASSWORD@...
IN_URL = re.compile(r"(\w+://)[^/\s@\"]+@")

SECRET_NAME = re.compile(r"^(key|keyfile)$|secret|passw|passphrase|token",
                         re.I)


class Redactor:
    """Knows the secrets of a configuration, besides what secrets look like."""

    def __init__(self, secrets=()):
        self.secrets = sorted({text for text in secrets if text}, key=len,
                              reverse=True)

    def text(self, text):
        for secret in self.secrets:
            text = text.replace(secret, REMOVED)
        text = CEPHX.sub(REMOVED, text)
        text = HANDLE_KEY.sub(REMOVED, text)
        text = IN_URL.sub(rf"\1{REMOVED}@", text)
        return NAMED.sub(self._named, text)

    @staticmethod
    def _named(match):
        quote = match[2][0] if match[2][0] in "\"'" else ""
        return f"{match[1]}{quote}{REMOVED}{quote}"

    def tree(self, value):
        """The same for each text in what JSON can show."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.tree(one) for one in value]
        if isinstance(value, dict):
            named = SECRET_NAME.search(str(value.get("name", "")))
            return {key: [REMOVED] if named and key == "values"
                    else REMOVED if SECRET_NAME.search(key)
                    and isinstance(one, str) and one
                    else self.tree(one) for key, one in value.items()}
        return value
