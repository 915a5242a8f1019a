"""Files of features in every format, written by geopandas."""

import gzip
import zipfile
from pathlib import Path

import geopandas
import shapely

FORMATS = {
    "geojson": "GeoJSON",
    "json": "GeoJSON",
    "geojsonl": "GeoJSONSeq",
    "gpkg": "GPKG",
    "kml": "LIBKML",
    "fgb": "FlatGeobuf",
    "shp": "ESRI Shapefile",
}
TRIANGLE = [(10, 50), (11, 50), (11, 51)]
BOW_TIE = [(0, 0), (2, 2), (2, 0), (0, 2)]


def frame(**columns):
    """Return three features: a polygon, a polygon with a hole, two polygons."""
    square = shapely.box(20, 40, 22, 42)
    shapes = [
        shapely.Polygon(TRIANGLE),
        square.difference(shapely.box(20.5, 40.5, 21, 41)),
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)]),
    ]
    columns = {"title": ["ä", "b", "c"], "lanes": [1, 2, 3]} | columns
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326")


def write(folder: Path, features, suffix: str, name: str = "areas") -> Path:
    """Write features with one of `FORMATS`, and an archive's suffix after it; return the path."""
    form, *archive = suffix.split(".")
    path = folder / f"{name}.{form}"
    features.to_file(path, driver=FORMATS[form])
    if archive == ["gz"]:
        packed = folder / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        return packed
    if archive == ["zip"]:
        return zipped(folder / f"{name}.zip", {p.name: p.read_bytes() for p in folder.glob(f"{name}.*")})
    return path


def zipped(path: Path, contents: dict[str, bytes]) -> Path:
    """Write an archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path
