"""The ASGI application: pages and the websocket."""

import gc
import os
import warnings

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# WhiteNoise serves files by a synchronous iterator, about which Django warns for every file.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

pages = get_asgi_application()

# The imports below need the Django apps, which the line above has loaded.
from channels.auth import AuthMiddlewareStack  # noqa: E402

from streaming.confined import fork_from_here  # noqa: E402
from webapp.consumers import Access, Direct, Monitor, SharedMonitor  # noqa: E402
from webapp.pages.languages import Language  # noqa: E402
from webapp.pages.sockets import SHARED_PATH, SOCKET_PATH  # noqa: E402
from webapp.pages.uploads import BoundedBody  # noqa: E402

sockets = URLRouter([path(SOCKET_PATH, Monitor.as_asgi()), path(SHARED_PATH, SharedMonitor.as_asgi())])
application = ProtocolTypeRouter(
    {"http": BoundedBody(pages), "websocket": Direct(AuthMiddlewareStack(Access(Language(sockets))))}
)
fork_from_here(settings.HOME / "forks")
# What is loaded now stays. To look for garbage among it takes a tenth of a second, in which nobody is answered.
gc.collect()
gc.freeze()
