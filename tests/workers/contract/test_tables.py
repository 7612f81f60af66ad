"""Looking at tables: what is found in each column, and the sentence that each broken one is refused with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workers.contract.looking import fault
from tests.workers.file_corpus import (
    COLOURS,
    table_rows,
    write_table,
)
from workers.contract.files.facts import MOST_VALUES, Facts
from workers.contract.files.tables import inspect_csv, inspect_parquet
from workers.contract.problems import SpecInvalid


def csv_fault(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    return fault(inspect_csv, path)


def test_it_finds_the_columns_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,y,colour,ok,label\n1,2.5,red,true,a\n2,,blue,false,b\n3,1e3,red,True,a\n,3,red,no,b\n")
    facts = inspect_csv(path)
    assert facts.samples == 4
    assert facts.parts[0].complete == 2
    assert [(column.name, column.type, column.missing) for column in facts.columns] == [
        ("x", "number", 1),
        ("y", "number", 1),
        ("colour", "category", 0),
        ("ok", "boolean", 0),
        ("label", "category", 0),
    ]
    assert facts.column("x").values == ("1", "2", "3")
    assert facts.column("x").mean == 2
    assert facts.column("x").std == pytest.approx(np.std([1, 2, 3]))
    assert facts.column("colour").values == ("blue", "red")
    assert Facts.model_validate_json(facts.model_dump_json()) == facts


def test_it_judges_a_column_by_all_of_it(tmp_path: Path) -> None:
    rows = [f"{number},{number}" for number in range(200_000)]
    path = write_table(tmp_path / "table.csv", [*rows, "1,word"], "a,b")
    facts = inspect_csv(path)
    assert facts.samples == 200_001
    assert [column.type for column in facts.columns] == ["number", "text"]
    assert facts.column("a").std == pytest.approx(np.std([*range(200_000), 1]))


def test_it_takes_a_column_of_too_many_words_for_text(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [f"word{number},1" for number in range(MOST_VALUES + 1)], "a,b")
    assert inspect_csv(path).column("a").type == "text"


def test_it_reads_other_separators_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa;b\r\n1;"x;y"\r\n'.encode())
    facts = inspect_csv(path)
    assert [column.name for column in facts.columns] == ["a", "b"]
    assert facts.column("b").values == ("x;y",)


def test_it_tells_no_classes_from_whole_numbers_that_float64_cannot_tell_apart(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [f"{2**60 + number},{2**53 - 1}" for number in range(9)], "id,b")
    facts = inspect_csv(path)
    assert (facts.column("id").type, facts.column("id").values) == ("number", ())
    assert facts.column("b").values == (str(2**53 - 1),)


def test_it_reads_a_folder_of_tables_as_one(tmp_path: Path) -> None:
    for number in range(3):
        write_table(tmp_path / f"{number}.csv", table_rows(10, seed=number))
    facts = inspect_csv(tmp_path)
    assert facts.samples == 30
    assert [part.name for part in facts.parts] == ["0.csv", "1.csv", "2.csv"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"a,b\n", "holds no row"),
        (b"a\n1\n", "fewer than two columns"),
        (b"a,b\n1,2,3\n", "a row of another length"),
        (b"a,b\n1,2\n3\n", "a row of another length"),
        (b"a,a\n1,2\n", "the column a twice"),
        (b"a,b\n1,inf\n", "infinite number in its column b"),
        (b"a,b\n1,\xff\xfe\n", "is not UTF-8 text"),
        (b"\xff\xfea,b\n1,2\n", "is not UTF-8 text"),
        (b"PK\x03\x04\0\0\0,\n1,2", "is not a CSV file"),
        (b"a,b\n1,x\0y\n", "a NUL character"),
        (b"a," * 3000 + b"b\n1", "has 3,001 columns"),
        (b"x" * (2**20 + 9), "no line of text"),
        (b"5.1,3.5,setosa\n4.9,3.0,setosa\n", "has the number 5.1 in its first line, where the columns' names belong"),
    ],
)
def test_it_refuses_a_table_that_is_none(content: bytes, said: str, tmp_path: Path) -> None:
    assert said in csv_fault(tmp_path, content)


def test_it_refuses_a_file_that_is_not_there_and_links_out_of_a_folder(tmp_path: Path) -> None:
    assert "is not there" in fault(inspect_csv, tmp_path / "none.csv")
    secret = write_table(tmp_path / "secret.txt", table_rows(3))
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "without a file that ends in .csv" in fault(inspect_csv, folder)
    (folder / "a.csv").symlink_to(secret)
    assert "a link out of the folder, a.csv" in fault(inspect_csv, folder)


def test_it_names_the_columns_that_there_are(tmp_path: Path) -> None:
    facts = inspect_csv(write_table(tmp_path / "t.csv", table_rows(9)))
    with pytest.raises(SpecInvalid, match=r"target: is not a column of the file.*Columns: a, b, colour, label"):
        facts.column("price")


def test_it_finds_the_same_in_parquet(tmp_path: Path) -> None:
    rows = [row.split(",") for row in table_rows(500)]
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "a": [float(value) for value in columns[0]],
            "b": [None, *(float(value) for value in columns[1][1:])],
            "colour": pa.array(columns[2]).dictionary_encode(),
            "ok": [value == "up" for value in columns[3]],
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    facts = inspect_parquet(tmp_path / "t.parquet")
    assert [(column.type, column.missing) for column in facts.columns] == [
        ("number", 0),
        ("number", 1),
        ("category", 0),
        ("boolean", 0),
    ]
    assert facts.column("colour").values == COLOURS
    assert facts.column("a").mean == pytest.approx(np.mean([float(value) for value in columns[0]]))


def test_it_refuses_parquet_that_is_none_torn_or_nested(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"a,b\n1,2\n")
    assert "is not a Parquet file" in fault(inspect_parquet, path)
    parquet.write_table(pa.table({"a": list(range(1000)), "b": list(range(1000))}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "is not a Parquet file or is torn" in fault(inspect_parquet, path)
    parquet.write_table(pa.table({"a": [[1, 2]], "b": [1]}), path)
    assert "list" in fault(inspect_parquet, path)
