"""A server of tests that answers every request by calling a function."""

import http.server
import threading
from contextlib import contextmanager, suppress


@contextmanager
def server(act):
    """Answer every request by calling a function with the handler."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self)
            with suppress(BrokenPipeError, ConnectionResetError):
                act(self)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.asked, found.closing = [], threading.Event()
        threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        found.at = f"http://127.0.0.1:{found.server_port}"
        try:
            yield found
        finally:
            found.closing.set()
            found.shutdown()


def anything(body: object) -> None:
    return None
