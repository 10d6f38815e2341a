"""The harness must not be fooled. Run: python3 -m unittest discover -s bench/tests"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom
from pathlib import Path

from fake_server import Asked, FakeServer, http

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import oneoff, plots, procfs, targets  # noqa: E402
from harness.check import check  # noqa: E402
from harness.errors import Unusable, WrongAnswer  # noqa: E402
from harness.load import Result, compare_bytes, parse  # noqa: E402
from harness.rounds import Row  # noqa: E402
from harness.servers import Command, Server, free_port  # noqa: E402
from harness.workloads import IDENTICAL, VARIANTS, VARYING, WORKLOADS  # noqa: E402

BY_NAME = {workload.name: workload for workload in WORKLOADS}


class CheckTest(unittest.TestCase):
    def ask(self, answer, name: str = "plaintext", variant: str = VARYING):
        server = FakeServer(answer)
        self.addCleanup(server.close)
        workload = BY_NAME[name]
        return check(server.port, workload.exchanges(variant, "127.0.0.1"), workload.pipeline, connections=4)

    def test_right_answers_pass(self) -> None:
        answer = self.ask(lambda _: http("Hello, World!"))
        self.assertEqual(answer.size, len(http("Hello, World!")))

    def test_chunked_answers_are_understood(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain;charset=UTF-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.ask(lambda _: head + b"7\r\nHello, \r\n6\r\nWorld!\r\n0\r\n\r\n")

    def test_one_wrong_body_among_many_fails(self) -> None:
        with self.assertRaisesRegex(WrongAnswer, "body"):
            self.ask(lambda asked: http("Hello, World?" if asked.number == 11 else "Hello, World!"))

    def test_wrong_status_fails(self) -> None:
        with self.assertRaisesRegex(WrongAnswer, "status 503"):
            self.ask(lambda _: http("Hello, World!", status="503 Service Unavailable"))

    def test_wrong_type_fails(self) -> None:
        with self.assertRaisesRegex(WrongAnswer, "content-type"):
            self.ask(lambda _: http("Hello, World!", content_type="text/html"))

    def test_answer_of_another_request_fails(self) -> None:
        def constant(asked: Asked) -> bytes:
            return http('{"id":"100000"}', content_type="application/json")

        def own(asked: Asked) -> bytes:
            wanted = re.match(r"/users/(\d+)", asked.path)
            return http(f'{{"id":"{wanted.group(1) if wanted else ""}"}}', content_type="application/json")

        self.ask(own, "route")
        with self.assertRaisesRegex(WrongAnswer, "body"):
            self.ask(constant, "route")

    def test_hangup_fails(self) -> None:
        with self.assertRaisesRegex(WrongAnswer, "no proper HTTP answer"):
            self.ask(lambda _: b"nonsense\r\n\r\n")


class LoadTest(unittest.TestCase):
    LINE = (
        'BENCH {{"requests":{requests},"microseconds":1000000,"bytes":100,"p50":10,"p99":20,'
        '"connect":0,"read":{read},"write":0,"status":{status},"timeout":{timeout}}}\n'
    )

    def line(self, **values: int) -> str:
        return self.LINE.format(**({"requests": 10, "read": 0, "status": 0, "timeout": 0} | values))

    def test_clean_run_passes(self) -> None:
        self.assertEqual(parse("Running\n" + self.line(), 0, "")["requests"], 10)

    def test_every_kind_of_error_fails(self) -> None:
        for kind in ("read", "status", "timeout"):
            with self.assertRaisesRegex(WrongAnswer, "errors under load"):
                parse(self.line(**{kind: 1}), 0, "")

    def test_no_answers_fail(self) -> None:
        with self.assertRaisesRegex(WrongAnswer, "0 requests"):
            parse(self.line(requests=0), 0, "")

    def test_broken_wrk_fails(self) -> None:
        with self.assertRaisesRegex(WrongAnswer, "unable to connect"):
            parse("", 1, "unable to connect")

    def test_answers_of_another_length_fail(self) -> None:
        compare_bytes(received=1000 * 115 + 300, answers=1000, size=115, pending=64)
        for received in (1000 * 115 - 1, 1000 * 125):
            with self.assertRaisesRegex(WrongAnswer, "bytes on average"):
                compare_bytes(received, answers=1000, size=115, pending=64)


class WorkloadTest(unittest.TestCase):
    def test_varying_requests_differ_and_identical_ones_do_not(self) -> None:
        for workload in WORKLOADS:
            varying = {exchange.request for exchange in workload.exchanges(VARYING, "h")}
            self.assertEqual(len(varying), VARIANTS)
            self.assertEqual(VARIANTS % workload.pipeline, 0)
            self.assertEqual(len({exchange.request for exchange in workload.exchanges(IDENTICAL, "h")}), 1)

    def test_all_answers_of_a_load_have_one_length(self) -> None:
        for workload in WORKLOADS:
            self.assertEqual(len({len(exchange.body) for exchange in workload.exchanges(VARYING, "h")}), 1)


def result(speed: float, cpu: float, disturbance: float = 0.0, wrk: float = 0.5) -> Result:
    return Result(speed, 1.0, 2.0, cpu, 0.9, wrk, disturbance, 115)


class RoundsTest(unittest.TestCase):
    def row(self, name: str, **servers: list[Result]) -> Row:
        results = {server.replace("_", "-"): dict(enumerate(list_)) for server, list_ in servers.items()}
        return Row(BY_NAME[name], IDENTICAL, results)

    def test_ratios_are_taken_within_a_round(self) -> None:
        # The machine halves its speed from round to round; the ratio stays.
        speeds = (100.0, 50.0, 25.0)
        row = self.row("json", limit=[result(s, 1) for s in speeds], surus=[result(s * 0.9, 1) for s in speeds])
        ratio = row.ratio("surus", "limit", lambda r: r.requests_per_second)
        assert ratio is not None
        self.assertAlmostEqual(ratio.low, 0.9)
        self.assertAlmostEqual(ratio.high, 0.9)

    def test_disturbed_rounds_do_not_count_while_most_are_quiet(self) -> None:
        row = self.row("json", limit=[result(100, 1), result(10, 1, 0.5), result(100, 1)])
        self.assertEqual(row.rounds(), [0, 2])
        self.assertFalse(row.disturbed())
        row = self.row("json", limit=[result(100, 1), result(10, 1, 0.5), result(10, 1, 0.5)])
        self.assertEqual(row.rounds(), [0, 1, 2])
        self.assertTrue(row.disturbed())

    def test_targets(self) -> None:
        def passed(row: Row) -> list[bool | None]:
            return [verdict.passed for verdict in targets.verdicts([row], oneoff.OneOff())]

        limit = [result(100, 1.0)]
        self.assertEqual(passed(self.row("plaintext", limit=limit, surus=[result(86, 1.2)])), [True, True])
        self.assertEqual(passed(self.row("plaintext", limit=limit, surus=[result(84, 1.4)])), [False, False])
        # With wrk at its end a low ratio says nothing of Surus; its CPU time does.
        self.assertEqual(passed(self.row("plaintext", limit=limit, surus=[result(84, 1.2, wrk=1.0)])), [None, True])
        row = self.row("classic", surus_classic=[result(24, 4)], nginx_fpm=[result(10, 9)])
        row.results["mod_php"] = {0: result(9, 9)}
        self.assertEqual(passed(row), [False, True])

    def test_idle_ticks_fail(self) -> None:
        found = targets.verdicts([], oneoff.OneOff(idle={"surus": (0, 2), "surus-classic": (1, 9)}))
        self.assertEqual([verdict.passed for verdict in found], [True, False])

    def test_plots_are_well_formed(self) -> None:
        row = self.row("pipelined", limit=[result(1_000_000, 0.7)], surus=[result(600_000, 1.1)])
        with tempfile.TemporaryDirectory() as folder:
            written = plots.write(Path(folder), [row], {"limit": "bare <hyper>", "surus": "Surus"})
            self.assertEqual(len(written), 3)
            for _, file in written:
                xml.dom.minidom.parse(str(Path(folder) / file))


class ServerTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name)

    def test_a_server_that_ends_is_reported_with_its_output(self) -> None:
        server = Server("x", "X", free_port(), [Command(["sh", "-c", "echo no such app; exit 1"])], self.scratch)
        with self.assertRaisesRegex(Unusable, "no such app"):
            server.start(core=None)

    def test_stop_ends_descendants_that_do_not_want_to(self) -> None:
        port = free_port()
        script = (
            "import os, signal, socket, time\n"
            f"s = socket.create_server(('127.0.0.1', {port}))\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "os.fork() or os.setsid()\n"
            "time.sleep(60)\n"
        )
        server = Server("x", "X", port, [Command([sys.executable, "-c", script])], self.scratch, processes=2)
        server.start(core=None)
        pids = server.pids()
        self.assertEqual(len(pids), 2)
        server.stop()
        self.assertEqual(procfs.tree(pids), set())

    def test_cpu_time_of_ended_children_is_counted(self) -> None:
        burn = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
        script = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {burn!r}])\n"
        script += "print('done', flush=True)\ntime.sleep(60)\n"
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        self.assertGreaterEqual(procfs.ticks([process.pid]), 0.2 * procfs.TICKS_PER_SECOND - 1)
        self.assertGreaterEqual(procfs.seconds([process.pid]), 0.19)

    def test_cpu_time_is_finer_than_ticks(self) -> None:
        before = procfs.seconds([os.getpid()])
        end = time.process_time() + 0.003
        while time.process_time() < end:
            pass
        used = procfs.seconds([os.getpid()]) - before
        self.assertGreater(used, 0.002)
        self.assertLess(used, 0.2)


if __name__ == "__main__":
    unittest.main()
