"""History from an archive once more: each event once, the latest of its records, as Parquet by day and event type.

  spark-submit --conf spark.sql.json.enableExactStringParsing=true spark.py ARCHIVE OUT

ARCHIVE and OUT are folders, or places that this Spark reaches (s3a://…, abfss://…, gs://… take the connector of the store).
"""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

archive, out = sys.argv[1:]
spark = (
    SparkSession.builder.appName("millrace: an archive once more")
    .config("spark.sql.session.timeZone", "UTC")
    # The body as it came: numbers of any size, keys in their order.
    .config("spark.sql.json.enableExactStringParsing", "true")
    .getOrCreate()
)

records = (
    spark.read.schema(
        "id STRING, source STRING, received_at TIMESTAMP, event_type STRING, team_id STRING,"
        " user_id STRING, client_user_id STRING, event STRING"
    )
    # Folders that begin with `_`, such as those of open files, are passed over by Spark.
    .option("recursiveFileLookup", "true")
    .option("pathGlobFilter", "*.ndjson*")
    .option("mode", "FAILFAST")
    .json(archive)
)

# A delivery that came twice has one id; what a person retried from quarantine under a known id has other bytes, and stays.
same = Window.partitionBy("source", "id", f.md5("event")).orderBy(f.col("received_at").desc())
events = records.withColumn("nth", f.row_number().over(same)).where("nth = 1").drop("nth")

(
    events.withColumn("dt", f.date_format("received_at", "yyyy-MM-dd"))
    .withColumn("type", f.col("event_type"))
    .write.partitionBy("dt", "type")
    .parquet(out)
)
