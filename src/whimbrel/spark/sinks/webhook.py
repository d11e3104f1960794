"""Post detections to a web address."""

from __future__ import annotations

import hashlib
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pyspark.sql import DataFrame

from whimbrel.errors import DataError, WhimbrelError
from whimbrel.io.detections import sorted_detections
from whimbrel.spark.sinks._form import DetectionForm, json_texts

_LOG = logging.getLogger(__name__)
_LONGEST_WAIT = 60.0
_WORTH_A_RETRY = frozenset({408, 425, 429})


@dataclass(frozen=True)
class WebhookSink:
    """Post JSON arrays of detections, from the driver, in the order in which Whimbrel reports them.

    At least once: a post that fails is tried again with growing waits, and if it keeps failing the
    micro-batch fails, so that a restarted query posts it again. The header `Idempotency-Key` is
    made from the ids of the detections and is the same for the same post; who receives it can drop what
    came before.

    Parameters
    ----------
    size
        The largest number of detections in one post.
    retries
        How many times a post is tried again.
    wait
        Seconds before the first retry; each later one waits twice as long, up to a minute.
    timeout
        Seconds to wait for an answer.
    token_variable
        The environment variable that holds a token to be sent as `Authorization: Bearer`.
    """

    url: str
    size: int = 500
    retries: int = 5
    wait: float = 0.5
    timeout: float = 10
    token_variable: str | None = None
    form: DetectionForm = field(default_factory=DetectionForm)

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).netloc:
            raise DataError(f"{self.url}: a webhook needs an address such as http://127.0.0.1:8080/hook")

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Post a micro-batch."""
        table = self.form.table(frame.toArrow())
        if table is None:
            return
        # Sorted, so that a micro-batch that is written again makes the same posts.
        table = sorted_detections(table)
        for start in range(0, table.num_rows, self.size):
            part = table.slice(start, self.size)
            ids = part["id"].to_pylist()
            self._post(_request(self, json_texts(part), ids), batch_id, len(ids))

    def _post(self, request: urllib.request.Request, batch_id: int, count: int) -> None:
        problem = ""
        for pause in [*self._waits(), None]:
            again = self._try(request)
            if again is None:
                return
            problem, asked = again
            if asked is None:
                break
            if pause is None:
                problem += f", after {self.retries + 1} tries"
                break
            wait = min(max(pause, asked), _LONGEST_WAIT)
            _LOG.warning("%s: %s; micro-batch %d is tried again in %g s", self.url, problem, batch_id, wait)
            time.sleep(wait)
        raise WhimbrelError(
            f"{self.url}: {count} detections of micro-batch {batch_id} could not be posted: {problem}; "
            "the micro-batch is not done, and is tried again when the query is started again"
        )

    def _waits(self) -> Iterator[float]:
        return (min(self.wait * 2**number, _LONGEST_WAIT) for number in range(self.retries))

    def _try(self, request: urllib.request.Request) -> tuple[str, float | None] | None:
        """Post once; return None, or the problem and the pause that was asked for (None: no use to retry)."""
        try:
            with urllib.request.urlopen(request, timeout=self.timeout):  # noqa: S310 - http or https: checked
                return None
        except urllib.error.HTTPError as error:
            with error:
                problem = f"the answer was {error.code} {error.reason}"
                if error.code < 500 and error.code not in _WORTH_A_RETRY:
                    return problem, None
                return problem, _seconds(error.headers.get("Retry-After"))
        except OSError as error:
            reason = getattr(error, "reason", error)
            return f"no answer ({reason})", 0.0


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isdecimal() else 0.0


def _request(sink: WebhookSink, texts: Sequence[str], ids: Sequence[str]) -> urllib.request.Request:
    headers = {"Content-Type": "application/json", "Idempotency-Key": _key(ids)}
    if sink.token_variable:
        headers["Authorization"] = f"Bearer {_token(sink.token_variable)}"
    body = ("[" + ",\n".join(texts) + "]").encode()
    return urllib.request.Request(sink.url, body, headers, method="POST")  # noqa: S310 - checked


def _key(ids: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(ids).encode()).hexdigest()[:32]


def _token(name: str, look: Callable[[str], str | None] = os.environ.get) -> str:
    token = look(name)
    if not token:
        raise WhimbrelError(
            f"the environment variable {name!r} should hold the webhook's token, and is not set"
        )
    return token
