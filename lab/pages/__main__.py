"""Polls the pages of a large cluster with many browsers, and prints how long they took.

The server has a process of its own, and so have the browsers. Half of them follow a page by its stream of events, as
far as there are places; the others load a page every few seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import time

import httpx
import psutil


async def _polls(client: httpx.AsyncClient, where: str, every: float, until: float, took: list[float]) -> None:
    await asyncio.sleep(random.random() * every)
    while time.monotonic() < until:
        begun = time.monotonic()
        answer = await client.get(where)
        answer.raise_for_status()
        took.append(time.monotonic() - begun)
        await asyncio.sleep(every * (0.5 + random.random()))


async def _follows(client: httpx.AsyncClient, where: str, until: float) -> None:
    async with client.stream("GET", where, headers={"Accept": "text/event-stream"}) as answer:
        if answer.status_code == 503:
            return
        async for _ in answer.aiter_lines():
            if time.monotonic() > until:
                return


async def _browse(root: str, browsers: int, streams: int, seconds: float, every: float) -> dict[str, list[float]]:
    name = "topology-007-7-1700000000"
    pages = {
        "cluster": "/ui/",
        "supervisors": "/ui/supervisors",
        "topology": f"/ui/topology/{name}",
        "component": f"/ui/topology/{name}/component/component-03",
    }
    took: dict[str, list[float]] = {page: [] for page in pages}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=root, timeout=60, trust_env=False, limits=limits) as client:
        for where in pages.values():
            (await client.get(where)).raise_for_status()
        until = time.monotonic() + seconds
        names = list(pages)
        tasks = [
            _polls(client, pages[names[at % 4]], every, until, took[names[at % 4]]) for at in range(browsers - streams)
        ]
        tasks += [_follows(client, pages[names[at % 4]], until) for at in range(streams)]
        await asyncio.gather(*tasks)
    return took


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m lab.pages", description=__doc__)
    parser.add_argument("--topologies", type=int, default=200)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--browsers", type=int, default=100)
    parser.add_argument("--streams", type=int, default=0, help="browsers that follow a page by its events")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two loads of one browser")
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    command = [sys.executable, "-m", "lab.pages.cluster", str(given.topologies), str(given.components)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        root = f"http://127.0.0.1:{int(server.stdout.readline())}"
        process = psutil.Process(server.pid)
        cpu = process.cpu_times()
        took = asyncio.run(_browse(root, given.browsers, given.streams, given.seconds, given.every))
        spent = process.cpu_times()
        memory = process.memory_info().rss
        server.communicate("")
    print(f"{'page':<12}{'loads':>8}{'p50 ms':>10}{'p95 ms':>10}{'most ms':>10}")
    for page, each in took.items():
        ordered = sorted(1e3 * value for value in each)
        if ordered:
            p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
            print(f"{page:<12}{len(ordered):>8}{statistics.median(ordered):>10.0f}{p95:>10.0f}{ordered[-1]:>10.0f}")
    busy = spent.user + spent.system - cpu.user - cpu.system
    print(f"server: {busy:.1f} s of processor time in {given.seconds:g} s, {memory >> 20} MB")


if __name__ == "__main__":
    main()
