"""Where the websocket is."""

SOCKET_PATH = "ws/monitor/"
