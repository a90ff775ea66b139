"""A chat-completions server that replies as it was told, by the last page of the prompt."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ScriptedModel", "scripted_model"]

Reply = Callable[[list[dict[str, Any]]], str | None]


class ScriptedModel:
    """Where it listens, and every prompt that it was asked."""

    def __init__(self, url: str, asked: list[list[dict[str, Any]]]) -> None:
        self.url = url
        self.asked = asked


@contextmanager
def scripted_model(reply: Reply) -> Iterator[ScriptedModel]:
    """Serves replies to prompts, whole or as a stream; None is a server's failure."""
    asked: list[list[dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(request["messages"])
            text = reply(request["messages"])
            if text is None:
                self._send(503, "application/json", json.dumps({"error": {"message": "down"}}))
            elif request.get("stream"):
                chunks = [_completion("delta", {"role": "assistant", "content": text}, None)]
                chunks += [_completion("delta", {}, "stop")]
                lines = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
                self._send(200, "text/event-stream", "".join(f"data: {line}\n\n" for line in lines))
            else:
                message = {"role": "assistant", "content": text}
                self._send(200, "application/json", json.dumps(_completion("message", message, "stop")))

        def _send(self, status: int, kind: str, body: str) -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ScriptedModel(f"http://127.0.0.1:{server.server_address[1]}/v1", asked)
    finally:
        server.shutdown()
        server.server_close()


def _completion(part: str, content: dict[str, Any], finish: str | None) -> dict[str, Any]:
    kind = "chat.completion" if part == "message" else "chat.completion.chunk"
    choice = {"index": 0, part: content, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": kind, "created": 0, "model": "scripted", "choices": [choice], "usage": usage}
