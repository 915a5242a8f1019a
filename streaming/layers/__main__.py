"""Import a file in a process of its own: ``python -m streaming.layers``, with a job as JSON on standard input.

The process writes JSON lines to standard output: ``{"share": 0.5}`` now and then, and at the end ``{"imported": ...}``
or ``{"error": ...}``; if the job has ``look``, only ``{"seen": ...}``. A file may come from anybody, GDAL is a large
library: so this process has limits on memory and on the size of files, no network, and only drivers that read files. It
can be ended at any time.
"""

import ctypes
import os
import resource
import select
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from streaming.confined import confine, memory_errors
from streaming.layers.offline import OPTIONS, go_offline

if TYPE_CHECKING:
    from streaming.layers.job import Job


# All vector drivers of GDAL 3.12 except `reading.DRIVERS`; GDAL reads this setting when it is loaded.
SKIPPED = (
    "MEM,PCIDSK,PDS4,VICAR,PDF,MBTiles,EEDA,OGCAPI,GDALG,MapInfo File,LVBAG,S57,DGN,OGR_VRT,CSV,GML,ESRIJSON,OGR_GMT,"
    "SQLite,WAsP,OpenFileGDB,DXF,GeoRSS,VFK,PGDUMP,OSM,GPSBabel,OGR_PDS,WFS,OAPIF,EDIGEO,Idrisi,ODS,XLSX,Elasticsearch,"
    "Carto,AmigoCloud,SXF,Selafin,JML,PLSCENES,CSW,VDV,MVT,NGW,MapML,GTFS,PMTiles,JSONFG,MiraMonVector,ADBC,AVCBin,"
    "AVCE00,AIVector,HTTP"
)

# The part of a small file may be larger than the file.
LEAST_FILE_BYTES = 1 << 30
# linux/prctl.h
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the job from standard input; write its progress and its result to standard output."""
    _end_with_who_asked()
    os.environ.update(OPTIONS, GDAL_SKIP=SKIPPED)
    go_offline()
    words = orjson.loads(sys.stdin.buffer.read())
    memory_bytes = words["limits"]["memory_bytes"]
    confine(memory_bytes)
    file_bytes = max(words["limits"]["unpacked_bytes"], LEAST_FILE_BYTES)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    from streaming.language import thousands
    from streaming.layers.features import InvalidLayer
    from streaming.layers.importing import import_file
    from streaming.layers.looking import look

    try:
        with memory_errors():
            if words["look"]:
                _say(seen=look(_job(words)))
                return
            imported = import_file(_job(words), lambda share: _say(share=share))
    except InvalidLayer as refused:
        _say(error=refused.document())
    except MemoryError:
        larger = InvalidLayer(
            "an import must do with %(bytes)s bytes of memory; this one needs more", bytes=thousands(memory_bytes)
        )
        _say(error=larger.document())
    else:
        _say(imported=asdict(imported) | {"part": str(imported.part)})


def _job(words: dict[str, Any]) -> "Job":
    """Return the job of a JSON object; the inverse of ``dataclasses.asdict``."""
    from streaming.layers.job import ImportLimits, ImportOptions, Job
    from streaming.spaces import Dimension, Space

    dimensions = tuple(Dimension(**axis) for axis in words["space"]["dimensions"])
    return Job(
        Path(words["path"]),
        Path(words["folder"]),
        Space(**words["space"] | {"dimensions": dimensions}),
        ImportOptions(**words["wanted"]),
        ImportLimits(**words["limits"]),
    )


def _end_with_who_asked() -> None:
    """Let the kernel end this process when its parent ends; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have ended before; then nobody reads from the pipe. Errors are polled even if not asked for.
        written = select.poll()
        written.register(sys.stdout.fileno(), 0)
        if written.poll(0):
            sys.exit(1)


def _say(**words: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(words) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
