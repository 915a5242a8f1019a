"""What each kind of channel sends to a real server, what may be reached, and that secrets stay secret."""

import base64
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import threading
from importlib.metadata import EntryPoint

import http_ece
import paho.mqtt.client as mqtt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.exceptions import ValidationError
from py_vapid import Vapid02

from bench.live import PATIENCE_S, wait_for
from bench.ports import answers, free_port
from streaming import entry_points
from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from tests.descriptors import many_open
from tests.webapp.alarms import changed, query_of, subscribed, webhook
from tests.webapp.certificates import self_signed
from tests.webapp.mail_server import Mailbox
from tests.webapp.receiver import Receiver
from webapp.delivery import outbox
from webapp.delivery.channels import GROUP, channel_kinds, make_channel, options_of, secrets_of
from webapp.delivery.channels import base as channel_base
from webapp.delivery.channels.base import Message, NotDelivered
from webapp.delivery.channels.push import public_key, vapid
from webapp.delivery.channels.webhook import signature
from webapp.delivery.messages import digest_of, message_of, trial_document
from webapp.delivery.pace import DeliveryPace
from webapp.delivery.sending import deliver_due, send_now
from webapp.models import Channel, Delivery, DeliveryAttempt

MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
INCIDENT = {
    "type": "incident",
    "change": {"id": 7, "what": "opened", "at": "2026-01-05T12:00:00.000+00:00", "user": None, "text": ""},
    "incident": {
        "id": 3,
        "key": "MMSI <1>",
        "partner": None,
        "severity": "critical",
        "opened": "2026-01-05T12:00:00.000+00:00",
        "closed": None,
        "acknowledged": None,
        "acknowledged_by": None,
        "assigned_to": None,
        "lon": 24.95,
        "lat": 60.17,
        "properties": {"speed_mps": 5.5, "flag": None},
    },
    "query": {"id": 5, "name": "Harbour – Süd", "stream": "ships", "space": "earth"},
    "url": "http://127.0.0.1:8000/#12/60.1700/24.9500",
}
MESSAGE = message_of("0123456789abcdef0123456789abcdef", INCIDENT)
SUBJECT = "[critical] Harbour – Süd: MMSI <1> opened"


@pytest.fixture(autouse=True)
def quick(settings, monkeypatch, tmp_path):
    """Make attempts short."""
    settings.DELIVERY_PACE = DeliveryPace(attempt_s=2.0)
    settings.HOME = tmp_path
    vapid.cache_clear()
    monkeypatch.setattr(outbox, "_wake", lambda: None)
    yield settings
    vapid.cache_clear()


@pytest.fixture
def receiver():
    with Receiver() as made:
        yield made


def send(kind, options, **secrets):
    """Send `MESSAGE` by a channel that is not saved."""
    channel = Channel(name="trial", kind=kind, options=options, secrets=secrets)
    channel.clean()
    return send_now(channel, MESSAGE)


def test_words_for_people_say_what_where_and_when():
    assert MESSAGE.subject == SUBJECT
    assert MESSAGE.urgent
    lines = MESSAGE.text.splitlines()
    assert lines[:3] == ["Object: MMSI <1>", "Query: Harbour – Süd", "Severity: critical"]
    assert "Entered: 2026-01-05 12:00:00 UTC" in lines
    assert "Latitude, longitude: 60.17000, 24.95000" in lines
    assert "speed_mps: 5.5" in lines and not any("flag" in line for line in lines)
    assert lines[-1] == "Incident 3: http://127.0.0.1:8000/#12/60.1700/24.9500"


def test_a_digest_counts_all_and_describes_the_first():
    def told(number, query, what, severity):
        document = json.loads(json.dumps(INCIDENT))
        document["incident"] |= {"key": f"ship-{number}", "severity": severity}
        document["change"] |= {"what": what, "at": f"2026-01-05T12:{number % 60:02}:00.000+00:00"}
        document["query"] |= {"id": query, "name": f"query {query}"}
        return document

    several = [told(n, n % 2, "closed" if n % 3 == 0 else "opened", "info") for n in range(250)]
    several[200]["incident"]["severity"] = "warning"
    document = digest_of(several)
    assert (document["count"], document["left_out"], len(document["incidents"])) == (250, 150, 100)
    assert document["changes"] == {"closed": 84, "opened": 166}
    assert document["severity"] == "warning"
    message = message_of("k", document)
    assert message.subject == "[warning] 250 more changes of incidents in 2 queries since 2026-01-05 12:00:00 UTC"
    assert "84 closed, 166 opened" in message.text and "and 240 more" in message.text
    one = message_of("k", digest_of([told(n, 1, "opened", "critical") for n in range(23)]))
    assert one.subject == "[critical] 23 more incidents in query 1 since 2026-01-05 12:00:00 UTC"


def test_a_webhook_gets_the_document_signed_with_its_time(receiver):
    status, took_s = send("webhook", {"url": receiver.url}, signing_key="k3y", token="t0ken")
    assert status == 200 and took_s < PATIENCE_S
    ((headers, body, path),) = receiver.requests
    assert json.loads(body) == {"id": MESSAGE.key, **INCIDENT}
    assert path == "/alarms"
    assert headers["Idempotency-Key"] == MESSAGE.key
    assert headers["Authorization"] == "Bearer t0ken"
    at_s = int(headers["Lookout-Signature"].split(",")[0].removeprefix("t="))
    assert headers["Lookout-Signature"] == signature("k3y", body, at_s)
    assert signature("k3y", body + b" ", at_s) != signature("k3y", body, at_s) != signature("k3y", body, at_s + 1)


def test_a_chat_gets_text_in_which_nothing_is_a_command(receiver):
    send("slack", {"username": "Lookout"}, url=f"{receiver.url}/T0/B0/s3cret")
    ((_, body, _),) = receiver.requests
    document = json.loads(body)
    assert document["username"] == "Lookout"
    assert document["text"].startswith("*[critical] Harbour – Süd: MMSI &lt;1&gt; opened*\nObject: MMSI &lt;1&gt;\n")
    assert "<" not in document["text"]


def test_a_letter_is_delivered_with_the_key_as_its_number():
    with Mailbox() as mailbox:
        options = {"to": ["ann@a.example", "bob@b.example"], "host": "127.0.0.1", "port": mailbox.port}
        status, _ = send("email", options | {"security": "none", "sender": "alarms@lookout.example"})
    ((receivers, letter),) = mailbox.letters
    assert status == 250
    assert receivers == ["ann@a.example", "bob@b.example"]
    assert letter["Subject"] == SUBJECT
    assert letter["From"] == "alarms@lookout.example"
    assert letter["Message-ID"] == f"<{MESSAGE.key}@lookout>"
    assert letter["Importance"] == "high"
    assert letter.get_content().split() == MESSAGE.text.split()


def test_a_letter_goes_to_the_operators_server_if_the_channel_names_none(quick):
    with pytest.raises(ValidationError, match="the operator has set no LOOKOUT_MAIL_URL"):
        send("email", {"to": ["ann@a.example"]})
    with Mailbox() as mailbox:
        quick.MAIL_URL, quick.DELIVERY_ACCESS = f"smtp://127.0.0.1:{mailbox.port}", FeedAccess()
        send("email", {"to": ["ann@a.example"]})
    assert mailbox.letters[0][1]["From"] == "lookout@localhost"


def test_a_mail_server_is_trusted_by_its_certificate_only_and_gets_the_password_only_then(tmp_path, monkeypatch):
    certificate, key = self_signed(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    with Mailbox(tls, login=("ann", "pa55word")) as mailbox:
        options = {"to": ["ann@a.example"], "host": "127.0.0.1", "port": mailbox.port, "username": "ann"}
        with pytest.raises(NotDelivered, match="certificate verify failed"):
            send("email", options, password="pa55word")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert send("email", options, password="pa55word")[0] == 250
        with pytest.raises(NotDelivered, match="535") as refused:
            send("email", options, password="wrong")
        assert not refused.value.final  # the password may be put right
    assert len(mailbox.letters) == 1


@pytest.mark.parametrize(("reply", "final"), [("550 no such user", True), ("451 try again later", False)])
def test_a_refused_receiver_is_told_and_tried_again_only_if_that_makes_sense(reply, final):
    with Mailbox(reply=reply) as mailbox, pytest.raises(NotDelivered, match=f"ann@a.example: {reply}") as refused:
        options = {"to": ["ann@a.example"], "host": "127.0.0.1", "port": mailbox.port, "security": "none"}
        send("email", options)
    assert (refused.value.status, refused.value.final) == (int(reply[:3]), final)


class Broker:
    """A mosquitto on loopback with one user, which tests kill; a context that ends it."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        (folder / "passwords").touch()
        name_and_password = [folder / "passwords", "ann", "pa55word"]
        subprocess.run([shutil.which("mosquitto_passwd"), "-b", *name_and_password], check=True)
        lines = [f"listener {self.port} 127.0.0.1", f"password_file {folder}/passwords", "allow_anonymous false"]
        user = ["user root"] if os.getuid() == 0 else []
        (folder / "mosquitto.conf").write_text("\n".join([*lines, *user]) + "\n")

    def __enter__(self):
        self.live()
        return self

    def __exit__(self, *_):
        self.die()

    def live(self):
        command = [MOSQUITTO, "-c", self.folder / "mosquitto.conf"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: answers(self.port), "the broker listens")

    def die(self):
        self._process.kill()
        self._process.wait()

    def listener(self, topic):
        """Return a client that has subscribed to a topic, and the list that its messages come to."""
        heard, ready = [], threading.Event()
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.username_pw_set("ann", "pa55word")
        client.on_message = lambda *told: heard.append(told[-1])
        client.on_connect = lambda *_: client.subscribe(topic, qos=1)
        client.on_subscribe = lambda *_: ready.set()
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        assert ready.wait(PATIENCE_S)
        return client, heard


@pytest.fixture
def broker(tmp_path):
    if not os.path.exists(MOSQUITTO):
        pytest.skip("no broker of MQTT is installed: apt-get install mosquitto")
    with Broker(tmp_path) as made:
        yield made


def test_a_broker_gets_the_document(broker):
    client, heard = broker.listener("port/#")
    options = {"host": "127.0.0.1", "port": broker.port, "tls": False, "topic": "port/alarms", "username": "ann"}
    with many_open():
        send("mqtt", options, password="pa55word")
    wait_for(lambda: heard, "a message")
    client.disconnect()
    client.loop_stop()
    (message,) = heard
    assert (message.topic, message.qos) == ("port/alarms", 1)
    assert json.loads(message.payload) == {"id": MESSAGE.key, **INCIDENT}
    with pytest.raises(NotDelivered, match="must accept the connection; it answered: Not authorized"):
        send("mqtt", options, password="wrong")
    broker.die()
    with pytest.raises(NotDelivered, match="Connection refused"):
        send("mqtt", options, password="pa55word")


def test_a_broker_that_is_silent_takes_no_longer_than_an_attempt():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {"host": "127.0.0.1", "port": silent.getsockname()[1], "tls": False}
        with pytest.raises(NotDelivered, match=r"must (answer in time|end within 2 s)"):
            send("mqtt", options)


class Browser:
    """The keys of a browser that has subscribed, and what it reads."""

    def __init__(self, endpoint):
        self.key, self.auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        public = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": _base64(public), "auth": _base64(self.auth)}
        self.subscription = json.dumps({"endpoint": endpoint, "keys": keys})

    def read(self, body):
        return json.loads(http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm"))


def _base64(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class PushService(Receiver):
    """A push service: its messages are not JSON, and their key is the topic."""

    def _turn(self, key, headers, body, path):
        with self._changed:
            self.requests.append((headers, body, path))
        return self.always


def test_a_browser_can_read_what_its_push_service_cannot():
    with PushService() as service:
        browser = Browser(f"{service.url}/abc")
        send("push", {}, subscription=browser.subscription)
        ((headers, body, _),) = service.requests
        notice = browser.read(body)
        assert (notice["title"], notice["url"], notice["id"]) == (SUBJECT, INCIDENT["url"], MESSAGE.key)
        assert b"Harbour" not in body
        assert headers["Topic"] == MESSAGE.key and headers["Urgency"] == "high"
        assert Vapid02.verify(headers["Authorization"])
        assert headers["Authorization"].endswith(f"k={public_key()}")
        vapid.cache_clear()  # as another process would read it
        assert headers["Authorization"].endswith(f"k={public_key()}")
        service.always, service.status = "refuse", 404
        with pytest.raises(NotDelivered) as gone:
            send("push", {}, subscription=browser.subscription)
        assert gone.value.final


def test_the_key_of_push_messages_is_readable_by_its_owner_only(tmp_path):
    public_key()
    assert (tmp_path / "vapid_key.pem").stat().st_mode & 0o777 == 0o600


RULES = [
    ("webhook", {"url": "ftp://a.example"}, {}, "url must begin with http:// or https://"),
    ("webhook", {}, {}, "url must be given"),
    ("webhook", {"url": "https://a.example", "colour": "red"}, {}, "got 'colour'"),
    ("webhook", {"url": "http://10.0.0.1/"}, {}, "or allowed by LOOKOUT_DELIVERY_HOSTS; '10.0.0.1'"),
    ("webhook", {"url": "http://[::ffff:169.254.169.254]/latest"}, {}, "must be public"),
    ("webhook", {"url": "http://localhost/"}, {}, None),
    ("slack", {}, {"url": "http://192.168.0.1/s3cret"}, "'192.168.0.1' is an address"),
    ("email", {"to": ["ann"], "host": "a.example"}, {}, "must be e-mail addresses; got 'ann'"),
    ("email", {"to": ["a@b.example\nBcc: c@d.example"], "host": "a.example"}, {}, "must be e-mail addresses"),
    ("email", {"to": ["a@b.example"], "host": "10.1.1.1"}, {}, "'10.1.1.1' is an address"),
    ("email", {"to": ["a@b.example"], "host": "a.example", "port": 70_000}, {}, r"port must lie in \[0, 65535\]"),
    ("email", {"to": ["a@b.example"], "host": "a.example", "security": "some"}, {}, "must be one of starttls"),
    ("mqtt", {"host": "10.0.0.1"}, {}, "'10.0.0.1' is an address"),
    ("mqtt", {"host": "a.example", "topic": "a/#"}, {}, r"without \+ and #; got 'a/#'"),
    ("push", {}, {"subscription": Browser("https://thief.example/x").subscription}, "a known push service, or allowed"),
    ("push", {}, {"subscription": Browser("https://x.push.apple.com.thief.example/x").subscription}, "'x.push.apple"),
    ("push", {}, {"subscription": Browser("https://fcm.googleapis.com/fcm/send/x").subscription}, None),
    ("push", {}, {"subscription": "{}"}, "must be a JSON object with endpoint and keys"),
    ("push", {}, {"subscription": '{"endpoint": "https://a.example", "keys": {"auth": "a"}}'}, "keys p256dh and auth"),
]


@pytest.mark.parametrize(("kind", "options", "secrets", "words"), RULES)
def test_options_that_break_a_rule_are_refused_with_the_rule(kind, options, secrets, words):
    if words is None:  # these are in reach; localhost stands for 127.0.0.1
        make_channel(kind, options, secrets)
        return
    with pytest.raises(InvalidOptions, match=words):
        make_channel(kind, options, secrets)


@pytest.mark.parametrize(
    ("kind", "options", "secrets"),
    [
        ("webhook", {"url": "http://inside.example:{port}/"}, {}),
        ("slack", {}, {"url": "http://inside.example:{port}/"}),
        ("email", {"to": ["a@b.example"], "host": "inside.example", "port": "{port}", "security": "none"}, {}),
        ("mqtt", {"host": "inside.example", "port": "{port}", "tls": False}, {}),
    ],
)
def test_a_public_name_that_leads_to_a_private_address_is_not_reached(quick, monkeypatch, kind, options, secrets):
    """The address is checked to which the connection would go, so a name that is rebound does not help."""
    quick.DELIVERY_ACCESS, look_up = FeedAccess(setting="LOOKOUT_DELIVERY_HOSTS"), socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: look_up("127.0.0.1", *rest, **more))
    with socket.create_server(("127.0.0.1", 0)) as inside:
        port = inside.getsockname()[1]

        def filled(told):
            return {
                name: port if value == "{port}" else value.format(port=port) if isinstance(value, str) else value
                for name, value in told.items()
            }

        with pytest.raises(NotDelivered, match="allowed by LOOKOUT_DELIVERY_HOSTS; 'inside"):
            send(kind, filled(options), **filled(secrets))
        inside.settimeout(0.1)
        with pytest.raises(TimeoutError):
            inside.accept()


@pytest.mark.django_db(transaction=True)
def test_a_secret_is_in_no_log_and_no_attempt_also_if_the_receiver_repeats_it(user, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    receiver.always = "refuse"
    receiver.headers = {"Location": "http://a.example/?t0ken-t0ken&s1gning-k3y"}
    subscribed(user, webhook(receiver.url, token="t0ken-t0ken", signing_key="s1gning-k3y"))
    with Receiver() as chat:
        chat.always, secret_url = "refuse", f"{chat.url}/s3cret"
        chat.headers = {"Location": secret_url}
        subscribed(user, Channel.objects.create(name="chat", kind="slack", secrets={"url": secret_url}))
        changed(query_of(user))
        deliver_due()
    told = " ".join(DeliveryAttempt.objects.values_list("error", flat=True)) + caplog.text
    assert told.count("must answer 2xx") >= 2
    for secret in ("t0ken-t0ken", "s1gning-k3y", "s3cret"):
        assert secret not in told
    assert not any("s3cret" in json.dumps(document) for document in Delivery.objects.values_list("document", flat=True))


class PigeonOptions(channel_base.ChannelOptions):
    """A channel of another package needs no options."""


class Pigeon(channel_base.ChannelBackend):
    """A bird."""

    flown: list[Message] = []

    async def send(self, message, session):
        if message.urgent:
            self.flown.append(message)
            return None
        raise KeyError("ring")


def test_another_package_brings_a_channel_but_replaces_none(monkeypatch):
    offered = {"pigeon": "tests.webapp.test_channels:Pigeon", "webhook": "tests.webapp.test_channels:Pigeon"}
    points = {name: EntryPoint(name, place, GROUP) for name, place in offered.items()}
    monkeypatch.setattr(entry_points, "_offered", lambda group: points if group == GROUP else {})
    assert channel_kinds() == ["email", "mqtt", "pigeon", "push", "slack", "webhook"]
    assert send("pigeon", {})[0] is None
    assert [message.subject for message in Pigeon.flown] == [SUBJECT]
    with pytest.raises(NotDelivered, match="KeyError: 'ring'"):
        send_now(Channel(name="trial", kind="pigeon"), message_of("k", trial_document("pigeon")))
    assert make_channel("webhook", {"url": "https://a.example"}, {}).options.url == "https://a.example"


def test_secrets_are_declared_apart_from_options():
    assert secrets_of("webhook") == ["signing_key", "token"]
    assert [option.name for option in options_of("webhook")] == ["url"]
    assert secrets_of("slack") == ["url"]
