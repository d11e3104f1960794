"""The one text form of sources and sinks: `kind:place?option=value&...`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from whimbrel.errors import DataError, did_you_mean


@dataclass(frozen=True)
class Spec:
    """A source or a sink as it was written: what kind, where, and with which options."""

    text: str
    kind: str
    place: str
    options: Mapping[str, str]

    def fail(self, problem: str, hint: str | None = None) -> DataError:
        """Build an error that shows the text it is about."""
        return DataError(f"{self.text}: {problem}" + (f"; {hint}" if hint else ""))

    def check_options(self, known: Collection[str], prefix: str | None = None) -> None:
        """Refuse an option that is not known, unless it starts with `prefix`."""
        for name in self.options:
            if name not in known and not (prefix and name.startswith(prefix)):
                raise self.fail(f"{self.kind} has no option {name!r}", did_you_mean(name, known))

    def number(self, name: str, default: float, least: float = 0, also: str = "") -> float:
        """Read an option that is a number, at least `least`; `also` says what else it may be."""
        text = self.options.get(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.fail(f"{name} must be a number{also}, not {text!r}") from None
        if not least <= value < float("inf"):
            raise self.fail(f"{name} is {text}; it must be at least {least:g}{also}")
        return value

    def whole(self, name: str, default: int, least: int = 1) -> int:
        """Read an option that is a whole number, at least `least`."""
        value = self.number(name, default, least)
        if value != int(value):
            raise self.fail(f"{name} must be a whole number, not {self.options[name]!r}")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Read an option that is true or false."""
        text = self.options.get(name, str(default)).lower()
        if text not in _FLAGS:
            raise self.fail(f"{name} must be true or false, not {text!r}")
        return _FLAGS[text]


_FLAGS = {"true": True, "yes": True, "1": True, "": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Address:
    """What stands between `kind://` and the options."""

    servers: str
    topic: str
    user: str | None
    password: str | None


def parse_spec(text: str, kinds: Mapping[str, str], options_after: str = "?") -> Spec:
    """Take a text form apart.

    Parameters
    ----------
    kinds
        The known kinds, each with an example for the error message.
    options_after
        The character that the options follow; a kind whose place is itself a web address has "#".
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in kinds:
        # A bare name of a file is the likeliest slip.
        shown = ", ".join(kinds.values())
        hint = did_you_mean(kind, kinds) if colon else None
        near = f"{hint} " if hint and hint.startswith("did you mean") else ""
        raise DataError(f"{text}: this names no kind of source or sink; {near}write one of: {shown}")
    target, _, query = rest.partition("#" if kind == "webhook" else options_after)
    pairs = parse_qsl(query, keep_blank_values=True)
    named = dict(pairs)
    spec = Spec(text, kind, target, named)
    if len(named) != len(pairs):
        twice = next(name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1)
        raise spec.fail(f"option {twice!r} is given twice")
    if not target.strip("/") and kind != "console":
        raise spec.fail(f"nothing follows {kind!r}", f"write it like {kinds[kind]}")
    return spec


def address(spec: Spec) -> Address:
    """Read `//user:password@server:port/topic`; the topic is percent-encoded where it needs to be."""
    split = urlsplit(spec.place)
    login, _, servers = split.netloc.rpartition("@")
    user, _, password = login.partition(":")
    topic = unquote(split.path.removeprefix("/"))
    if not servers:
        raise spec.fail("no server is named", f"write {spec.kind}://host:port/topic")
    if not topic:
        raise spec.fail("no topic is named", f"write {spec.kind}://{servers}/topic")
    return Address(servers, topic, unquote(user) or None, unquote(password) or None)
