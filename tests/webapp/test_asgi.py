"""The web process itself."""

import gc

from webapp.asgi import application


def test_what_is_loaded_is_not_looked_through_for_garbage():
    assert application and gc.get_freeze_count() > 100_000
