"""A TCP proxy that can drop all packets without a word, as a network may."""

import asyncio
import contextlib
import threading

from bench.live import PATIENCE_S
from bench.ports import free_port


class Proxy:
    """Forwards connections to a port of this machine while it is a context; `freeze` keeps them open and silent.

    Parameters
    ----------
    target : int
        The port.

    Attributes
    ----------
    port : int
        On which it listens.
    connections : int
        How many there have been.
    """

    def __init__(self, target: int) -> None:
        self.target, self.port, self.connections = target, free_port(), 0

    def __enter__(self) -> "Proxy":
        self._loop, self._flows = asyncio.new_event_loop(), asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        return self

    def __exit__(self, *_) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def freeze(self) -> None:
        """Drop what comes from now on, and take new connections without an answer."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def thaw(self) -> None:
        """Forward the bytes of new connections; those that were frozen stay so."""
        self._loop.call_soon_threadsafe(self._flows.set)

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    async def _serve(self, reader, writer):
        self.connections += 1
        with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError, OSError):
            await self._flows.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            with contextlib.closing(back):
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader, writer):
        """Forward bytes until one side closes, or the proxy drops some: then for ever nothing."""
        dropped = False
        while chunk := await reader.read(65536):
            dropped = dropped or not self._flows.is_set()
            if not dropped:
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def _end(self):
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
