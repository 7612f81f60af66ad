"""A visitor's socket in the ASGI protocol itself (channels.testing wants daphne, which nothing else here needs)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

from asgiref.testing import ApplicationCommunicator


class Socket(ApplicationCommunicator):
    def __init__(self, application: Any, path: str, user: Any) -> None:
        parts = urlsplit(path)
        scope = {
            "type": "websocket",
            "path": unquote(parts.path),
            "query_string": parts.query.encode(),
            "headers": [],
            "subprotocols": [],
            "user": user,
        }
        super().__init__(application, scope)

    async def connect(self) -> bool:
        """Whether the server accepted."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout=10)
        return answer["type"] == "websocket.accept"

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        answer = await self.receive_output(timeout=15)
        assert answer["type"] == "websocket.send", answer
        return json.loads(answer["text"])

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=10)
