"""A broker of MQTT."""

import asyncio
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from streaming.decoders.options import REQUIRED, option
from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from webapp.delivery.channels.base import ChannelBackend, ChannelOptions, Message, NotDelivered, connect, secret

try:
    import paho.mqtt.client as mqtt
except ImportError:  # the extra `mqtt` is not installed
    mqtt = None  # type: ignore[assignment]


@dataclass(frozen=True)
class MqttOptions(ChannelOptions):
    """Options of the channel `mqtt`; see docs/delivery.md."""

    host: str = option(REQUIRED, "the broker")
    port: int = option(0, "its port; 0: 8883 with TLS, 1883 without", minimum=0)
    tls: bool = option(True, "whether the connection is encrypted")
    topic: str = option("lookout/incidents", "the topic that messages are published to")
    username: str = option("", "the name to log in with; empty: none")
    password: str = secret("", "the password to log in with")
    retain: bool = option(False, "whether the broker keeps the last message for new subscribers")


class MqttChannel(ChannelBackend):
    """A topic of an MQTT broker, with quality of service 1."""

    options_class = MqttOptions

    def check(self) -> None:
        """Refuse a broker that is not public, and topics that are patterns."""
        if mqtt is None:
            raise InvalidOptions('kind must be one that is installed; got mqtt: pip install "paho-mqtt"')
        if self.options.port > 65_535:
            raise InvalidOptions("port must lie in [0, 65535]; got %(port)s", port=self.options.port)
        if not self.options.topic or any(sign in self.options.topic for sign in "+#\0"):
            raise InvalidOptions(
                "topic must be the name of a topic, without + and #; got %(topic)s", topic=repr(self.options.topic)
            )
        self.access.check_host(self.options.host)

    async def send(self, message: Message, session: Any) -> None:
        """Publish the document, and wait until the broker has acknowledged it; see `base.ChannelBackend.send`."""
        await asyncio.to_thread(self._send, message)

    def _send(self, message: Message) -> None:
        told, until_s = self.options, time.monotonic() + settings.DELIVERY_PACE.attempt_s
        client = _client(self.access, told)
        answers = []
        client.on_connect = lambda _client, _data, _flags, reason, _properties: answers.append(reason)
        port = told.port or (8883 if told.tls else 1883)
        client.connect(told.host, port, keepalive=60)
        try:
            _run(client, until_s, lambda: answers, gettext_noop("the broker must answer in time; it is silent"))
            (answer,) = answers
            if answer.is_failure:
                raise NotDelivered(
                    "the broker must accept the connection; it answered: %(answer)s", answer.value, answer=answer
                )
            published = client.publish(told.topic, message.body, qos=1, retain=told.retain)
            _run(
                client,
                until_s,
                published.is_published,
                gettext_noop("the broker must acknowledge in time; it is silent"),
            )
        finally:
            client.disconnect()
            client.loop_misc()


def _client(access: FeedAccess, told: MqttOptions) -> "mqtt.Client":
    class GuardedMqtt(mqtt.Client):
        def _create_socket_connection(self) -> socket.socket:
            """Connect to an address in reach."""
            return connect(access, self._host, self._port, settings.DELIVERY_PACE.attempt_s)

    client = GuardedMqtt(mqtt.CallbackAPIVersion.VERSION2)
    if told.username:
        client.username_pw_set(told.username, told.password)
    if told.tls:
        client.tls_set_context(ssl.create_default_context())
    return client


def _run(client: "mqtt.Client", until_s: float, done: Callable[[], object], rule: str) -> None:
    """Let the client read and write until something is done."""
    while not done():
        code = _step(client, min(0.5, max(0.01, until_s - time.monotonic())))
        if done():
            return
        if code != mqtt.MQTT_ERR_SUCCESS:
            raise NotDelivered("the connection to the broker must last; %(mqtt)s", mqtt=mqtt.error_string(code))
        if time.monotonic() > until_s:
            raise NotDelivered(rule)


def _step(client: "mqtt.Client", patience_s: float) -> int:
    """Let the client read and write once. Its own `loop` uses `select`, which refuses descriptors above 1,023."""
    connection = client.socket()
    if connection is None:
        return mqtt.MQTT_ERR_NO_CONN
    decrypted = connection.pending() if isinstance(connection, ssl.SSLSocket) else 0
    with selectors.PollSelector() as selector:
        selector.register(connection, selectors.EVENT_READ | (selectors.EVENT_WRITE if client.want_write() else 0))
        ready = selector.select(0 if decrypted else patience_s)
    events = ready[0][1] if ready else 0
    code = mqtt.MQTT_ERR_SUCCESS
    if decrypted or events & selectors.EVENT_READ:
        code = client.loop_read()
    if code == mqtt.MQTT_ERR_SUCCESS and events & selectors.EVENT_WRITE:
        code = client.loop_write()
    return client.loop_misc() if code == mqtt.MQTT_ERR_SUCCESS else code
