"""Chats that take incoming webhooks as Slack does, such as Slack, Mattermost and Rocket.Chat."""

import json
from dataclasses import dataclass
from typing import Any

from streaming.decoders.options import REQUIRED, option
from webapp.delivery.channels.base import ChannelBackend, ChannelOptions, Message, post, secret, shortened
from webapp.delivery.channels.webhook import check_url

# Slack cuts longer texts.
_CHARACTERS = 3_900
# https://api.slack.com/reference/surfaces/formatting#escaping
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True)
class SlackOptions(ChannelOptions):
    """Options of the channel `slack`; see docs/delivery.md."""

    url: str = secret(REQUIRED, "the address of the incoming webhook; who knows it can write")
    username: str = option("", "the name under which messages appear, where the chat allows it")


class SlackChannel(ChannelBackend):
    """A chat with incoming webhooks like Slack's."""

    options_class = SlackOptions

    def check(self) -> None:
        """Refuse an address that is not public, as far as is known without the DNS."""
        check_url(self.access, "url", self.options.url)

    async def send(self, message: Message, session: Any) -> int:
        """Post the text; see `base.ChannelBackend.send`."""
        message = shortened(message, _CHARACTERS)
        lines = (f"*{message.subject.translate(_ESCAPED)}*", message.text.translate(_ESCAPED))
        document = {"text": "\n".join(lines)} | ({"username": self.options.username} if self.options.username else {})
        headers = {"Content-Type": "application/json", "User-Agent": "Lookout", "Idempotency-Key": message.key}
        return await post(session, self.options.url, json.dumps(document).encode(), headers)
