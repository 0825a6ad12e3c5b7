import type {
  LocatedReject,
  ShapeProgress,
  ShapeTextOptions,
} from '../../../src/tables/ndjson/shape-text.ts';
import { shapeText } from '../../../src/tables/ndjson/shape-text.ts';

export interface Shaped {
  /** NDJSON of each table. */
  readonly rows: Readonly<Record<string, string>>;
  readonly rejects: readonly LocatedReject[];
  readonly unknown: readonly string[];
  readonly progress: ShapeProgress;
}

/** Shapes a text into rows of meals and their foods, gathered in memory. */
export async function shapeAll(
  chunks: AsyncIterable<Buffer>,
  options: Partial<ShapeTextOptions> = {},
): Promise<Shaped> {
  const tables = options.tables ?? ['meals', 'meal_items'];
  const pieces: Record<string, Buffer[]> = Object.fromEntries(tables.map((table) => [table, []]));
  const rejects: LocatedReject[] = [];
  const unknown: string[] = [];
  const progress = await shapeText(chunks, {
    ...options,
    tables,
    write: async (table, rows) => {
      await Promise.resolve();
      pieces[table]?.push(Buffer.from(rows));
    },
    onReject: (reject) => rejects.push(reject),
    onUnknown: (table, path) => unknown.push(`${table}: ${path}`),
  });
  const rows = Object.fromEntries(
    Object.entries(pieces).map(([table, parts]) => [table, Buffer.concat(parts).toString()]),
  );
  return { rows, rejects, unknown, progress };
}

/** The text in chunks of such sizes, over and over; every chunk is overwritten when the next one is asked for. */
export async function* chunked(text: string | Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  const chunk = Buffer.alloc(Math.max(...sizes));
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const copied = bytes.copy(chunk, 0, at, at + (sizes[n % sizes.length] ?? 1));
    at += copied;
    await Promise.resolve();
    yield chunk.subarray(0, copied);
    chunk.fill(0x58);
  }
}
