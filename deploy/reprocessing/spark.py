"""History from an archive once more: each event once, the latest of its records, as Parquet by day and event type.

  spark-submit spark.py ARCHIVE OUT

ARCHIVE and OUT are folders, or places that this Spark reaches (s3a://…, abfss://…, gs://… take the connector of the store).
"""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

archive, out = sys.argv[1:]
spark = (
    SparkSession.builder.appName("millrace: an archive once more")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)

# The lines as text: whatever reads JSON writes numbers anew, 1.10 as 1.1. What stands before the body has no such text in it.
lines = (
    # Folders that begin with `_`, such as those of open files, are passed over by Spark.
    spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.ndjson*").text(archive)
)
head = f.from_json(
    f.concat(f.substring_index("value", ',"event":', 1), f.lit("}")),
    "id STRING, source STRING, received_at TIMESTAMP, event_type STRING, team_id STRING, user_id STRING, client_user_id STRING",
    {"mode": "FAILFAST"},
)
body = f.expr("substring(value, instr(value, ',\"event\":') + 9)")
records = lines.select(
    head.alias("head"),
    f.regexp_replace(body, r'(?:,"body_base64":"[A-Za-z0-9+/=]*")?\}$', "").alias("event"),
).select("head.*", "event")

# A delivery that came twice has one id; what a person retried from quarantine under a known id has other bytes, and stays.
same = Window.partitionBy("source", "id", f.md5("event")).orderBy(f.col("received_at").desc())
events = records.withColumn("nth", f.row_number().over(same)).where("nth = 1").drop("nth")

(
    events.withColumn("dt", f.date_format("received_at", "yyyy-MM-dd"))
    .withColumn("type", f.col("event_type"))
    .write.partitionBy("dt", "type")
    .parquet(out)
)
