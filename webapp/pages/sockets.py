"""The paths of the websockets."""

SOCKET_PATH = "ws/monitor/"
# For guests, who opened a share link with this secret.
SHARED_PATH = "ws/shared/<str:secret>/"
