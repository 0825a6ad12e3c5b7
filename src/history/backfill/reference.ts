import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ServiceClient } from '../service/client.ts';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import { shapeText } from '../../tables/ndjson/shape-text.ts';
import { TABLES } from '../../tables/tables.ts';
import type { ReferenceQuery, Resource } from './resources.ts';

export interface PullSummary {
  readonly rows: Readonly<Record<string, number>>;
  readonly rejects: number;
  /** Items that the service does not have: `insurance of user …`. */
  readonly missing: readonly { readonly item: string; readonly reason: string }[];
  /** Lists that may not be whole, and why. */
  readonly incomplete: readonly string[];
  readonly unknown_fields: readonly string[];
  readonly files: readonly string[];
}

export interface PullOptions {
  readonly query: ReferenceQuery;
  /** Folder of the files. */
  readonly output: string;
  /** Time of the run, milliseconds since the epoch: orders rows that have no time of their own. */
  readonly now: number;
  readonly signal: AbortSignal;
  /** Called after each answer. */
  readonly onProgress?: (progress: PullProgress) => void;
}

export interface PullProgress {
  readonly answers: number;
  /** Number of answers; null when only the last page shows it. */
  readonly total: number | null;
  readonly rows: Readonly<Record<string, number>>;
  readonly missing: number;
}

/**
 * Fetches one resource into tables: `markers.ndjson` and the tables nested in it. The files get their names once they are complete.
 * @throws ServiceError, ServiceInputError, MillraceError folder_unwritable
 */
export async function pullReference(
  service: ServiceClient,
  { table, needs, fetch }: Resource,
  { query, output, now, signal, onProgress }: PullOptions,
): Promise<PullSummary> {
  const tables = TABLES.withNested(table);
  const rows: Record<string, number> = Object.fromEntries(tables.map((name) => [name, 0]));
  const unknown = new Set<string>();
  const missing: PullSummary['missing'][number][] = [];
  const incomplete: string[] = [];
  const run = { _loaded_at: new Date(now).toISOString() };
  let rejects = 0;
  const each = query[needs ?? 'users'].length;
  const total = each === 0 ? null : each;
  let answers = 0;
  const { paths } = await RowFiles.fill(output, tables, async (files) => {
    for await (const answer of fetch(service, query, signal)) {
      answers += 1;
      onProgress?.({ answers, total, rows, missing: missing.length });
      if ('incomplete' in answer) {
        incomplete.push(answer.incomplete);
        continue;
      }
      if ('missing' in answer) {
        missing.push({ item: answer.missing, reason: answer.reason });
        continue;
      }
      const { text, given } = answer;
      const shaped = await shapeText(Readable.from([Buffer.from(text)]), {
        tables,
        given: { ...given, ...run },
        source: () => `${answers}:${hash('sha256', text, 'hex')}`,
        write: (name, lines) => files.write(name, lines),
        onReject: (reject) => files.reject(JSON.stringify({ ...given, ...reject })),
        onUnknown: (name, path) => unknown.add(`${name}.${path}`),
        signal,
      });
      rejects += shaped.rejects;
      for (const [name, count] of Object.entries(shaped.rows)) rows[name] = (rows[name] ?? 0) + count;
    }
  });
  return { rows, rejects, missing, incomplete, unknown_fields: [...unknown].toSorted(), files: paths };
}
