-- History from an archive once more: each event once, the latest of its records, as Parquet by day and event type.
-- Set what it reads and writes first:
--   SET VARIABLE archive = 's3://acme-health/archive'; SET VARIABLE out = 's3://acme-health/again';
-- A store takes the extension httpfs and a secret: https://duckdb.org/docs/stable/core_extensions/httpfs/s3api
-- The lines as text: whatever reads JSON writes numbers anew, 1.10 as 1.1. What stands before the body has no such text in it.
CREATE OR REPLACE TEMP VIEW records AS
SELECT
  line->>'$.id' AS id, line->>'$.source' AS source, (line->>'$.received_at')::TIMESTAMPTZ AS received_at,
  line->>'$.event_type' AS event_type, line->>'$.team_id' AS team_id, line->>'$.user_id' AS user_id,
  line->>'$.client_user_id' AS client_user_id,
  regexp_replace(
    substr(line::VARCHAR, strpos(line::VARCHAR, ',"event":') + 9), '(,"body_base64":"[A-Za-z0-9+/=]*")?\}$', ''
  )::JSON AS event
FROM (
  SELECT json AS line
  FROM read_ndjson_objects(getvariable('archive') || '/**/*.ndjson*', maximum_object_size = 33554432)
);

-- A delivery that came twice has one id; what a person retried from quarantine under a known id has other bytes, and stays.
CREATE OR REPLACE TEMP VIEW events AS
SELECT * FROM records
QUALIFY row_number() OVER (PARTITION BY source, id, md5(event::VARCHAR) ORDER BY received_at DESC) = 1;

COPY (SELECT *, strftime(received_at AT TIME ZONE 'UTC', '%Y-%m-%d') AS dt, event_type AS type FROM events)
TO (getvariable('out')) (FORMAT parquet, PARTITION_BY (dt, type), OVERWRITE_OR_IGNORE);
