"""A table of answers that grows by parts, in a folder beside it, until it is complete.

Each part has a summary beside it, which is written last: a part without one is answered again.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.errors import SettingsError, optional
from bayescfx.requests.answer_files import write_table


class GrowingTable:
    """A table that is written part by part.

    Parameters
    ----------
    path : str
        The file of the complete table, ``.csv`` or ``.parquet``.
    key : str
        Identifies the request: parts of another one are an error.
    """

    def __init__(self, path: str, key: str) -> None:
        self.path = Path(path)
        self.folder = Path(f"{path}.parts")
        self._ending = self.path.suffix.lower()
        manifest = self.folder / "manifest.json"
        content = json.dumps({"key": key})
        if manifest.is_file() and manifest.read_text() == content:
            return
        if self.summaries():
            raise SettingsError(
                f"{str(self.folder)!r} holds answers of another command, which was cut short. "
                "Run that again, or remove the folder."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest.write_text(content)

    def summaries(self) -> dict[int, dict[str, Any]]:
        """Return the summary of each part that is complete, by its number and in order."""
        paths = sorted(self.folder.glob("*.summary"))
        return {int(path.stem): json.loads(path.read_text()) for path in paths}

    def write_part(self, number: int, table: pd.DataFrame, summary: dict[str, Any]) -> None:
        """Write one part, and then its summary."""
        write_table(table, str(self._part(number)))
        (self.folder / f"{number:08d}.summary").write_text(json.dumps(summary))

    def finish(self) -> None:
        """Put the parts together in one file, and remove them."""
        parts = [self._part(number) for number in self.summaries()]
        whole = Path(f"{self.path}.part")
        if self._ending == ".parquet":
            _join_parquet(parts, whole)
        else:
            _join_csv(parts, whole)
        os.replace(whole, self.path)
        shutil.rmtree(self.folder)

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:08d}{self._ending}"


def _join_parquet(parts: list[Path], whole: Path) -> None:
    """Join parquet files one after the other; the first one has the schema."""
    parquet: Any = optional("pyarrow.parquet", "parquet files need", "models")
    schema = parquet.read_schema(parts[0])
    with parquet.ParquetWriter(whole, schema) as writer:
        for part in parts:
            writer.write_table(parquet.read_table(part).cast(schema))


def _join_csv(parts: list[Path], whole: Path) -> None:
    """Join CSV files one after the other; only the first keeps its line of column names."""
    with whole.open("wb") as target:
        for part in parts:
            with part.open("rb") as source:
                if part != parts[0]:
                    source.readline()
                shutil.copyfileobj(source, target)
