"""A proxy that delivers the body of an answer in its own way."""
import http.server
import threading

import httpx


def one_byte(body):
    """Each byte in a piece of its own."""
    return (bytes([b]) for piece in body for b in piece)


def crlf(body):
    """Lines end as they do on the systems of some proxies."""
    return (piece.replace(b"\n", b"\r\n") for piece in body)


def crlf_one_byte(body):
    return one_byte(crlf(body))


def one_newline(body):
    """Broken: events are no longer parted by an empty line."""
    return (piece.replace(b"\n\n", b"\n") for piece in body)


class Proxy:
    """Passes requests on to a server until it is closed. Answers leave as one chunk
    of the transfer coding for each piece, so that a client gets them apart."""

    def __init__(self, target, deliver):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                keep = {k: v for k, v in self.headers.items() if k.lower() in ("content-type", "accept", "authorization")}
                with httpx.stream("POST", target + self.path, content=body, headers=keep, timeout=120, trust_env=False) as answer:
                    self.send_response(answer.status_code)
                    self.send_header("Content-Type", answer.headers["Content-Type"])
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for piece in deliver(answer.iter_raw()):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
