"""The embedded ClickHouse, in memory. Each line of stdin is a JSON text of statements; the answer to each is a line of JSON: the
rows of the last statement, or a text that says what is wrong."""

import json
import sys

from chdb import session

warehouse = session.Session()
warehouse.query("CREATE DATABASE IF NOT EXISTS health")
warehouse.query("USE health")
for line in sys.stdin:
    try:
        text = ""
        for statement in (one.strip().rstrip(";") for one in json.loads(line).split(";\n")):
            if statement:
                text = str(warehouse.query(statement, "JSONCompactEachRow"))
        answer = [json.loads(row) for row in text.splitlines() if row.startswith("[")]
    except Exception as error:  # pylint: disable=broad-except
        answer = str(error)
    print(json.dumps(answer), flush=True)
