-- History from an archive once more: each event once, the latest of its records, as Parquet by day and event type.
-- Set what it reads and writes first:
--   SET VARIABLE archive = 's3://acme-health/archive'; SET VARIABLE out = 's3://acme-health/again';
-- A store takes the extension httpfs and a secret: https://duckdb.org/docs/stable/core_extensions/httpfs/s3api
CREATE OR REPLACE TEMP VIEW records AS
SELECT id, source, received_at, event_type, team_id, user_id, client_user_id, event
FROM read_json(
  getvariable('archive') || '/**/*.ndjson*',
  format = 'newline_delimited',
  hive_partitioning = false,
  maximum_object_size = 33554432,
  columns = {
    id: 'VARCHAR', source: 'VARCHAR', received_at: 'TIMESTAMPTZ', event_type: 'VARCHAR', team_id: 'VARCHAR',
    user_id: 'VARCHAR', client_user_id: 'VARCHAR', event: 'JSON'
  }
);

-- A delivery that came twice has one id; what a person retried from quarantine under a known id has other bytes, and stays.
CREATE OR REPLACE TEMP VIEW events AS
SELECT * FROM records
QUALIFY row_number() OVER (PARTITION BY source, id, md5(event::VARCHAR) ORDER BY received_at DESC) = 1;

COPY (SELECT *, strftime(received_at AT TIME ZONE 'UTC', '%Y-%m-%d') AS dt, event_type AS type FROM events)
TO (getvariable('out')) (FORMAT parquet, PARTITION_BY (dt, type), OVERWRITE_OR_IGNORE);
