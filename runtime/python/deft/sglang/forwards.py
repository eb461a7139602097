"""What SGLang's runner is doing, as far as its own arguments say it."""

from __future__ import annotations

import functools
from typing import Any


class Forwards:
    """The forwards of a runner, by number, and the requests of the one that is under way.

    A request's name is an object that stays as long as the request. So two forwards with the same objects are of the same
    requests, also where a client uses a name again."""

    def __init__(self, runner: Any) -> None:
        self.number = 0
        self.requests: list[str] | None = None  # None: there is no forward, or it does not say
        forward = getattr(runner, "forward", None)
        if forward is not None:
            runner.forward = self._followed(forward)

    def _followed(self, forward: Any) -> Any:
        @functools.wraps(forward)
        def followed(forward_batch: Any, *arguments: Any, **more: Any) -> Any:
            self.number += 1
            self.requests = getattr(forward_batch, "rids", None)
            try:
                return forward(forward_batch, *arguments, **more)
            finally:
                self.requests = None

        return followed
