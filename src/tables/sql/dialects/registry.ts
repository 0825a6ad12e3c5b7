import { bigquery } from './bigquery.ts';
import { clickhouse } from './clickhouse.ts';
import { databricks } from './databricks.ts';
import type { Dialect } from './dialect.ts';
import { duckdb } from './duckdb.ts';
import { postgres } from './postgres.ts';
import { redshift } from './redshift.ts';
import { snowflake } from './snowflake.ts';

export const DIALECTS = {
  bigquery,
  snowflake,
  redshift,
  databricks,
  clickhouse,
  postgres,
  duckdb,
} as const satisfies Record<string, Dialect>;

export type DialectName = keyof typeof DIALECTS;
