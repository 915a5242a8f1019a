"""A feed that the gateway requests again and again by HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.http_session import guarded_session, is_http
from streaming.gateway.transports.base import (
    OPEN,
    READ_BYTES,
    Chunk,
    LiveTransport,
    Mark,
    Restricted,
    TransportError,
    check,
    parse_options,
)

_TIMEOUT_S = 30.0
_NOT_MODIFIED = 304
# RFC 9110 8.8: the header that describes the last document, and the one that asks only for a different document.
_VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
_BODY_BYTES = 64 << 20


@dataclass(frozen=True)
class HttpPollOptions:
    """Options of the transport `http_poll`; see docs/transports.md."""

    url: str = option(REQUIRED, "an address that begins with http:// or https://")
    interval_s: float = option(30.0, "pause between two requests, up to 86400")
    headers: Mapping = option({}, "request headers, for instance an API key", shape="texts")

    def __post_init__(self) -> None:
        check(
            is_http(self.url),
            "url must begin with http:// or https:// and name a host; got %(url)s",
            url=repr(self.url),
        )
        check(
            0 < self.interval_s <= 86_400,
            "interval_s must lie in (0, 86400]; got %(interval_s)s",
            interval_s=repr(self.interval_s),
        )
        texts = all(isinstance(text, str) for item in self.headers.items() for text in item)
        check(texts, "headers must be texts by name; got %(headers)s", headers=repr(self.headers))


class HttpPoll(Restricted, LiveTransport):
    """An HTTP address that is requested at intervals; each response is a document. An unchanged one is skipped."""

    declared = HttpPollOptions

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(HttpPollOptions, definition)
        self.validators: dict[str, str] = {}

    def check_access(self) -> None:
        """Refuse an address that is not public, as far as is known without the DNS; see `base.Restricted`."""
        self.access.check_host(URL(self.options.url).host or "")

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield one document after another; see `base.Transport.chunks`."""
        async with guarded_session(self.access, _TIMEOUT_S, headers=self.options.headers) as session:
            while True:
                yield await self._poll(session)
                await asyncio.sleep(self.options.interval_s)

    async def _poll(self, session: aiohttp.ClientSession) -> Chunk:
        try:
            async with session.get(self.options.url, headers=self.validators) as response:
                if response.status == _NOT_MODIFIED:
                    return OPEN
                response.raise_for_status()
                body = await _body(response)
                self.validators = {
                    ask: response.headers[told] for told, ask in _VALIDATORS.items() if told in response.headers
                }
                return Chunk(payload=body, mark=Mark.DOCUMENT_END)
        except aiohttp.ClientResponseError as error:
            answer = f"{error.status} {error.message}"
            raise TransportError(
                "%(url)s must answer 200 or 304; got %(answer)s", url=self.options.url, answer=answer
            ) from None
        except aiohttp.ClientError as error:
            raise TransportError(
                "%(url)s: %(error)s", url=self.options.url, error=error or type(error).__name__
            ) from None


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for part in response.content.iter_chunked(READ_BYTES):
        body += part
        if len(body) > _BODY_BYTES:
            raise TransportError(
                "a document must not exceed %(body_bytes)s bytes; %(url)s sends more",
                body_bytes=_BODY_BYTES,
                url=response.url,
            )
    return bytes(body)
