"""What is measured beside loads must not be fooled either. Run: python3 -m unittest discover -s bench/tests"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from fake_server import Asked, FakeServer, http

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import connections, oneoff, pace, reloads, targets, uploads  # noqa: E402
from harness.errors import Unusable, WrongAnswer  # noqa: E402
from harness.workloads import IDENTICAL, WORKLOADS  # noqa: E402

HELLO = next(each for each in WORKLOADS if each.name == "plaintext").exchanges(IDENTICAL, "h")[0]
CORE = min(os.sched_getaffinity(0))


class BesideTest(unittest.TestCase):
    def server(self, answer: Callable[[Asked], bytes]) -> FakeServer:
        server = FakeServer(answer)
        self.addCleanup(server.close)
        return server

    def test_the_pace_is_kept_and_every_answer_compared(self) -> None:
        found = pace.ask(self.server(lambda _: http("Hello, World!")), HELLO, CORE, 0.2)
        self.assertEqual(found.count, 0.2 * pace.PER_SECOND)
        self.assertLessEqual(found.p50, found.worst)
        with self.assertRaisesRegex(WrongAnswer, "body"):
            pace.ask(self.server(lambda asked: http("Hello, World!" if asked.number < 9 else "?")), HELLO, CORE, 0.2)
        closing = self.server(lambda _: b"HTTP/1.1 200 OK\r\nno length\r\n\r\n")
        with self.assertRaisesRegex(WrongAnswer, "its log"):
            pace.ask(closing, HELLO, CORE, 0.2)

    def upload(self, answer: Callable[[Asked], bytes], form: bool = False, counts_all: bool = False) -> int:
        load = uploads.Load(self.server(answer), "raw body", "/upload", form, counts_all)  # type: ignore[arg-type]
        request, right = load.request()
        count, _ = uploads._send(load.server.port, request, right, 0, 2)
        return count

    def test_uploads_are_counted_when_their_answer_is_right(self) -> None:
        self.assertEqual(self.upload(lambda asked: http(str(asked.length))), 2)
        self.assertEqual(self.upload(lambda asked: http(str(asked.length)), form=True, counts_all=True), 2)
        self.assertEqual(self.upload(lambda _: http(str(uploads.SIZE)), form=True), 2)
        with self.assertRaisesRegex(WrongAnswer, "1000"):
            self.upload(lambda _: http("1000"))
        with self.assertRaisesRegex(WrongAnswer, "413"):
            self.upload(lambda asked: http(str(asked.length), status="413 Content Too Large"))

    def test_idle_connections_must_live(self) -> None:
        server = self.server(lambda _: http("Hello, World!"))
        connections.idle(server, HELLO, 20)  # type: ignore[arg-type]
        # 64 connections of the first check with 4 requests each, one of each new connection, and then one is wrong.
        server = self.server(lambda asked: http("Hello, World!" if asked.number < 64 * 4 + 25 else "?"))
        with self.assertRaisesRegex(WrongAnswer, "body"):
            connections.idle(server, HELLO, 20)  # type: ignore[arg-type]

    def test_too_many_connections_are_refused_at_once(self) -> None:
        with self.assertRaisesRegex(Unusable, "open files"):
            connections.allow(1 << 40)

    def test_a_failed_reload_fails(self) -> None:
        server = self.server(lambda _: http("Hello, World!"))
        with self.assertRaisesRegex(WrongAnswer, "reload"):
            reloads.measure(server, Path("/bin/false"), HELLO, CORE, 2)  # type: ignore[arg-type]

    def test_a_reload_that_does_not_end_fails(self) -> None:
        self.addCleanup(setattr, reloads, "PATIENCE", reloads.PATIENCE)
        reloads.PATIENCE = 0.5
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "surus")
            program.write_text("#!/bin/sh\nexec sleep 60\n", encoding="ascii")
            program.chmod(0o755)
            server = self.server(lambda _: http("Hello, World!"))
            with self.assertRaisesRegex(WrongAnswer, "0.5 s"):
                reloads.measure(server, program, HELLO, CORE, 2)  # type: ignore[arg-type]

    def test_a_server_that_is_gone_fails_what_asks_it(self) -> None:
        server = self.server(lambda _: http("Hello, World!"))
        server.close()
        with self.assertRaisesRegex(WrongAnswer, "its log"):
            pace.ask(server, HELLO, CORE, 0.2)  # type: ignore[arg-type]
        server.name = "gone"  # type: ignore[attr-defined]
        row = uploads.Row(uploads.Load(server, "raw body", "/upload", False))  # type: ignore[arg-type]
        with contextlib.redirect_stderr(io.StringIO()):
            uploads.measure([row], (CORE, CORE), 1, 1)
        self.assertIn("its log", row.failure or "")

    def test_targets_of_uploads(self) -> None:
        def row(name: str, rates: list[float], counts_all: bool = False, keeps: bool = False) -> uploads.Row:
            load = uploads.Load(SimpleNamespace(name=name), "form", "/", True, counts_all, keeps)  # type: ignore[arg-type]
            quiet = pace.Pace(1.0, 2.0, 3.0, 100)
            return uploads.Row(load, {n: uploads.Result(rate, 0.01, quiet, quiet, 0.0) for n, rate in enumerate(rates)})

        limit = row("limit", [100.0, 50.0], counts_all=True)
        rows = [limit, row("surus-classic", [60.0, 30.0]), row("surus", [40.0, 20.0]), row("nginx-fpm", [1.0, 1.0])]
        found = targets.verdicts([], oneoff.OneOff(uploads=rows))
        self.assertEqual([verdict.passed for verdict in found], [True, False])
        rows = [limit, row("limit", [60.0], counts_all=True, keeps=True), row("surus-classic", [40.0], keeps=True)]
        found = targets.verdicts([], oneoff.OneOff(uploads=rows))
        self.assertEqual([verdict.passed for verdict in found], [False, True])
        self.assertIn("writes files", found[1].what)


if __name__ == "__main__":
    unittest.main()
