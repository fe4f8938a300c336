"""Notes in model files: round trip and validation."""

import io
import json

import pytest

from maxmargin import SVC, load, save
from maxmargin.interchange import ModelFileError, read_notes
from maxmargin.interchange.model_file import FORMAT
from maxmargin.storage.file_format import PREFIX, PREFIX_BYTES, checksum

MODEL = SVC().fit([[0.0], [1.0]], [0, 1])


def file_of(notes=None):
    file = io.BytesIO()
    save(MODEL, file, notes)
    file.seek(0)
    return file


def test_round_trip():
    notes = {"data": "größe.csv", "rows": 2, "seconds": 0.1, "": ""}
    assert read_notes(file_of(notes)) == notes
    assert load(file_of(notes)).predict([[0.9]]) == [1]
    assert read_notes(file_of()) == read_notes(file_of({})) == {}
    assert file_of({}).read() == file_of().read()


@pytest.mark.parametrize("notes", [{"a": None}, {"a": [1]}, {"a": float("nan")}, {"a": True}, {1: "a"}])
def test_only_strings_and_numbers(notes):
    with pytest.raises(ModelFileError, match="notes of a model file must be strings and finite numbers by name"):
        file_of(notes)


@pytest.mark.parametrize("notes", [[], "text", {"a": {"b": 1}}, {"a": None}, None])
def test_crafted_notes_are_rejected(notes):
    whole = file_of().read()
    size = PREFIX.unpack_from(whole)[3]
    header = json.loads(whole[PREFIX_BYTES : PREFIX_BYTES + size]) | {"notes": notes}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    arrays = whole[PREFIX_BYTES + size :]
    start = PREFIX.pack(FORMAT.magic, FORMAT.version, 0, len(text), PREFIX_BYTES + len(text) + len(arrays))
    crafted = start + checksum([start, text, arrays]) + text + arrays
    for read in (load, read_notes):
        with pytest.raises(ModelFileError, match="notes"):
            read(io.BytesIO(crafted))
