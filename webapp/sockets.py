"""The path of the websocket."""

SOCKET_PATH = "ws/monitor/"
