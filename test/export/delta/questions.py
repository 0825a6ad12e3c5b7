"""Answers questions about Delta tables, one JSON line each, with a reader that shares no code with millrace."""

import json
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError

TYPES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal9": pa.decimal128(9, 2),
    "decimal38": pa.decimal128(38, 10),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "binary": pa.binary(),
    "string": pa.string(),
}


def value(kind, row):
    """A made-up value that differs by row; every fourth is null."""
    if row % 4 == 3:
        return None
    if pa.types.is_boolean(kind):
        return row % 2 == 0
    if pa.types.is_floating(kind):
        return [-0.0, float("nan"), 1.5][row % 4]
    if pa.types.is_decimal(kind):
        return Decimal(row - 1) / 4
    if pa.types.is_timestamp(kind):
        return datetime(2026, 11, 1 + row, 10, 0, 0, 123456, tzinfo=timezone.utc)
    if pa.types.is_date(kind):
        return date(1970, 1, 1) + timedelta(days=row - 1)
    if pa.types.is_binary(kind):
        return bytes([255, 0, row])
    return f"made up {row}" if pa.types.is_string(kind) else row - 1


def plain(value):
    if isinstance(value, float) and (value != value or value == 0):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal) or hasattr(value, "isoformat"):
        return str(value)
    # JSON readers have no such numbers.
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def rows(table, columns, filters):
    found = table.to_pyarrow_table(columns=columns)
    if filters is not None:
        # The dataset passes over files by their statistics; what is left of them is compared.
        expression = None
        for name, _, value in filters:
            field = pa.field(name, table.to_pyarrow_table().schema.field(name).type)
            one = ds.field(name) == pa.scalar(value).cast(field.type)
            expression = one if expression is None else expression & one
        found = table.to_pyarrow_dataset().to_table(columns=columns, filter=expression)
    return [[plain(v) for v in row.values()] for row in found.to_pylist()]


def ask(question):
    kind, path = question["kind"], question["path"]
    if kind == "append":
        while True:
            try:
                full = DeltaTable(path).to_pyarrow_table()
                made = [{**full.slice(0, 1).to_pylist()[0], **row} for row in question["rows"]]
                write_deltalake(path, pa.Table.from_pylist(made, schema=full.schema), mode="append")
                break
            except (FileNotFoundError, CommitFailedError):
                # An erasure has taken the version away that was being read; a program that writes begins again then.
                continue
        return {}
    if kind == "create":
        fields = [pa.field(name, TYPES[kind]) for name, kind in question["types"].items()]
        made = pa.Table.from_pylist(question["rows"], schema=pa.schema([pa.field("user_id", pa.string())]))
        for field in fields:
            values = [value(field.type, row) for row in range(made.num_rows)]
            made = made.append_column(field, pa.array(values, field.type))
        properties = WriterProperties(compression=question.get("compression", "SNAPPY"))
        write_deltalake(path, made, partition_by=question.get("partition_by"), writer_properties=properties)
        return {}
    table = DeltaTable(path, version=question.get("version"))
    if kind == "rows":
        filters = [tuple(condition) for condition in question.get("filters", [])] or None
        return {"rows": rows(table, question["columns"], filters)}
    if kind == "filters":
        full = table.to_pyarrow_table()
        lost, columns = [], 0
        for name in full.column_names:
            values = [v for v in full.column(name).to_pylist() if v is not None]
            if not values:
                continue
            columns += 1
            wanted = full.column(name).to_pylist().count(values[0])
            if table.to_pyarrow_table(filters=[(name, "=", values[0])]).num_rows != wanted:
                lost.append(name)
        return {"lost": lost, "columns": columns}
    if kind == "checkpoint":
        table.create_checkpoint()
        return {"version": table.version()}
    if kind == "facts":
        return {
            "version": table.version(),
            "rows": table.to_pyarrow_table().num_rows,
            "files": sorted(uri.split("/")[-1] for uri in table.file_uris()),
            "types": {f.name: str(f.type) for f in table.schema().fields},
            "partitions": table.metadata().partition_columns,
            "protocol": [table.protocol().min_reader_version, table.protocol().min_writer_version],
        }
    if kind == "txn":
        return {"version": table.transaction_version(question["id"])}
    if kind == "vacuum":
        return {"files": table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True)}
    if kind == "history":
        return {"operations": [entry.get("operation") for entry in table.history()]}
    if kind == "optimize":
        table.optimize.compact()
        return {"version": table.version()}
    raise ValueError(kind)


for line in sys.stdin:
    try:
        print(json.dumps(ask(json.loads(line))), flush=True)
    except Exception as error:  # the test says what it makes of it
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
