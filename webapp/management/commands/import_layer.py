"""``manage.py import_layer``: import a file of features into a layer."""

import re
import time
from pathlib import Path

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from streaming.layers import ImportOptions, InvalidLayer, suffixes_of
from webapp.layers import Label, begin_import, run_import
from webapp.management.prepared import PreparedCommand
from webapp.models import Layer
from webapp.words.refusals import Refused

BAR = 40
# If the output is not a terminal, a line is written this often at most.
LINE_S = 10.0


class Command(PreparedCommand):
    """Import a file as a new layer, or as a new version of an existing one."""

    help = "Import a file that GDAL reads (GeoJSON, GeoPackage, zipped Shapefile, KML, FlatGeobuf, ...) into a layer."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", help="of the layer; made from the file's name where it is left out")
        parser.add_argument("--title", default="", help="as people see it")
        parser.add_argument("--space", default="", help="where it lies; earth where it is left out")
        parser.add_argument("--crs", default="", help="coordinate reference system, where it is not the file's own")
        parser.add_argument("--key", default="", help="the property that names a feature")
        parser.add_argument("--table", default="", help="which of the file's tables, where it has several; * for all")
        parser.add_argument("--encoding", default="", help="of the file's texts, where it names none or a wrong one")
        parser.add_argument("--edges", default="", help="keep, to leave edges over more than 180 degrees as they are")

    def handle(
        self,
        *_: object,
        file: Path,
        name: str | None,
        title: str,
        space: str,
        crs: str,
        key: str,
        table: str,
        encoding: str,
        edges: str,
        **__: object,
    ) -> None:
        """Import, with a progress bar; Ctrl-C cancels."""
        try:
            if not file.is_file():
                raise CommandError(f"file must be the path of a file; got {str(file)!r}")
            suffixes_of(file.name)
            layer = begin_import(None, Label(name or name_of(file), title, space))
        except (Refused, InvalidLayer) as error:
            raise CommandError(str(error)) from None
        bar = Bar(self.stdout, layer.name)
        try:
            layer = run_import(layer, file.absolute(), ImportOptions(crs, key, table, encoding, edges), bar.show)
        except KeyboardInterrupt:
            bar.end()
            raise CommandError(f"cancelled; layer {layer.name!r} is as it was", returncode=130) from None
        bar.end()
        if layer.status != Layer.READY:
            raise CommandError(layer.error or layer.status)
        for problem in layer.problems:
            where = "the file" if problem["row"] is None else f"feature {problem['row']}"
            self.stdout.write(f"{where}: {problem['reason']}")
        told = f"layer {layer.name!r}: version {layer.version}, {layer.features:,} features"
        self.stdout.write(f"{told}, {layer.problem_count:,} problems")


def name_of(file: Path) -> str:
    """Return a layer's name made from a file's name."""
    name = re.sub(r"[^a-z0-9_]+", "-", file.name.lower().split(".")[0]).strip("-_")
    return re.sub(r"^[^a-z]*", "", name)[:40] or "layer"


class Bar:
    """A progress bar: redrawn in a terminal; elsewhere a line every `LINE_S`.

    Parameters
    ----------
    out : django.core.management.base.OutputWrapper
    name : str
        Name of the layer, shown before the bar.
    """

    def __init__(self, out: OutputWrapper, name: str) -> None:
        self.out, self.name, self.drawn, self.written_s = out, name, False, time.monotonic()

    def show(self, share: float) -> None:
        """Show the progress, a share from 0 to 1."""
        if self.out.isatty():
            done = round(share * BAR)
            self.out.write(f"\r{self.name} [{'#' * done}{'.' * (BAR - done)}] {share:4.0%}", ending="")
            self.out.flush()
            self.drawn = True
        elif time.monotonic() - self.written_s >= LINE_S:
            self.written_s = time.monotonic()
            self.out.write(f"{self.name} {share:.0%}")

    def end(self) -> None:
        """End the line of the bar, if one was drawn."""
        if self.drawn:
            self.out.write("")
