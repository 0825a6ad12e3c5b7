"""Reads [{"dialect", "name", "sql"}] from stdin; prints a JSON list of what sqlglot cannot parse, and of what it only takes whole."""

import json
import logging
import sys

import sqlglot
from sqlglot import exp

logging.disable(logging.CRITICAL)
found = []
for case in json.load(sys.stdin):
    # What psql itself understands is no SQL.
    sql = "\n".join(line for line in case["sql"].split("\n") if not line.startswith("\\"))
    try:
        statements = sqlglot.parse(sql, read=case["dialect"], error_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.errors.SqlglotError as error:
        found.append({"name": case["name"], "error": str(error)[:2000]})
        continue
    whole = sorted({one.this.upper() for one in statements if isinstance(one, exp.Command)})
    tables = sorted(
        {table.name for one in statements if one is not None for table in one.find_all(exp.Table) if table.name}
    )
    found.append({"name": case["name"], "count": len(statements), "whole": whole, "tables": tables})
print(json.dumps(found))
