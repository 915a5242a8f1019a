"""The actions on layers, one function each, for the site, the admin, the management command and the worker."""

from webapp.layers.imports import (
    Label,
    begin_import,
    begin_upload,
    cancel_import,
    retire_imports,
    run_import,
)
from webapp.layers.turns import running_imports
from webapp.layers.versions import announce, catch_up, edit_features, tell_engine
from webapp.models.layers import layer_store

__all__ = [
    "Label",
    "announce",
    "begin_import",
    "begin_upload",
    "cancel_import",
    "catch_up",
    "edit_features",
    "layer_store",
    "retire_imports",
    "run_import",
    "running_imports",
    "tell_engine",
]
