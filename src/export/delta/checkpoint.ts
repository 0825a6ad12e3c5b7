import { parquetReadObjects } from 'hyparquet';
import { parquetWriteBuffer, type SchemaElement } from 'hyparquet-writer';
import { readWhole } from '../../core/objects.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { isRecord } from '../../lib/parsed.ts';
import type { Action } from './actions.ts';
import { checkpointName, type Snapshot } from './snapshot.ts';
import { ELEMENTS } from '../parquet/footer.ts';
import { bufferOf, DECOMPRESS } from '../parquet/stored-pages.ts';

/** The log that a checkpoint belongs to. */
interface LogFolder {
  readonly store: ObjectStore;
  readonly url: string;
  key(name: string): string;
}

const LAST = '_last_checkpoint';
/** Removed files are listed for so long, for readers of older versions: a week. Milliseconds. */
const TOMBSTONES = 7 * 86_400_000;

const columnOf =
  (type: Omit<SchemaElement, 'name'>) =>
  (name: string): SchemaElement[] => [{ name, repetition_type: 'OPTIONAL', ...type }];
const text = columnOf(ELEMENTS.text);
const long = columnOf({ type: 'INT64' });
const int = columnOf({ type: 'INT32' });
const boolean = columnOf({ type: 'BOOLEAN' });

const struct = (name: string, ...fields: SchemaElement[][]): SchemaElement[] => [
  { name, repetition_type: 'OPTIONAL', num_children: fields.length },
  ...fields.flat(),
];

const group = (name: string, type: 'MAP' | 'LIST'): SchemaElement => {
  const kind = { converted_type: type, logical_type: { type } };
  return { name, repetition_type: 'OPTIONAL', num_children: 1, ...kind };
};

const map = (name: string): SchemaElement[] => [
  group(name, 'MAP'),
  { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
  ...text('key').map((element) => ({ ...element, repetition_type: 'REQUIRED' as const })),
  ...text('value'),
];

const list = (name: string): SchemaElement[] => [
  group(name, 'LIST'),
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  ...text('element'),
];

/** The protocol's checkpoint schema, without parts that this program never writes. */
const SCHEMA: SchemaElement[] = [
  { name: 'checkpoint', num_children: 5 },
  ...struct('txn', text('appId'), long('version'), long('lastUpdated')),
  ...struct(
    'add',
    text('path'),
    map('partitionValues'),
    long('size'),
    long('modificationTime'),
    boolean('dataChange'),
    map('tags'),
    text('stats'),
  ),
  ...struct(
    'remove',
    text('path'),
    long('deletionTimestamp'),
    boolean('dataChange'),
    boolean('extendedFileMetadata'),
    map('partitionValues'),
    long('size'),
  ),
  ...struct(
    'metaData',
    text('id'),
    text('name'),
    text('description'),
    struct('format', text('provider'), map('options')),
    text('schemaString'),
    list('partitionColumns'),
    map('configuration'),
    long('createdTime'),
  ),
  ...struct(
    'protocol',
    int('minReaderVersion'),
    int('minWriterVersion'),
    list('readerFeatures'),
    list('writerFeatures'),
  ),
];

/** Writes a checkpoint of a committed version, and then makes it the last one. */
export async function writeCheckpoint(
  log: LogFolder,
  snapshot: Snapshot,
  signal?: AbortSignal,
): Promise<void> {
  const rows = actionsOf(snapshot, Date.now());
  const columns = ['txn', 'add', 'remove', 'metaData', 'protocol'] as const;
  const columnData = columns.map((name) => {
    return { name, data: rows.map((action) => (action[name] === undefined ? null : stored(action[name]))) };
  });
  const bytes = Buffer.from(parquetWriteBuffer({ columnData, schema: SCHEMA, codec: 'SNAPPY' }));
  const name = log.key(checkpointName(snapshot.version));
  // Another writer may have been faster: its checkpoint of this version is the same.
  await log.store.putIfAbsent(name, { bytes }, signal);
  await pointTo(
    log,
    { version: snapshot.version, size: rows.length, numOfAddFiles: snapshot.files.size },
    signal,
  );
}

/** A pointer to an older checkpoint does no harm, because readers only begin there. */
async function pointTo(log: LogFolder, last: object, signal?: AbortSignal): Promise<void> {
  const key = log.key(LAST);
  const body = { bytes: Buffer.from(JSON.stringify(last)) };
  const present = await log.store.head(key, signal);
  if (present === null) await log.store.putIfAbsent(key, body, signal);
  else await log.store.putIfMatch(key, present.version, body, signal);
}

/** @throws Error when it cannot be read */
export async function readCheckpoint(
  log: LogFolder,
  version: number,
  signal?: AbortSignal,
): Promise<Action[]> {
  const name = checkpointName(version);
  const bytes = await readWhole(log.store, log.key(name), signal);
  try {
    const rows = await parquetReadObjects({ file: bufferOf(bytes), compressors: DECOMPRESS });
    return rows.map((row) => plain(row) as Action);
  } catch (error) {
    throw new Error(`${log.url}: ${name} cannot be read`, { cause: error });
  }
}

function actionsOf({ protocol, metaData, txns, files, tombstones }: Snapshot, now: number): Action[] {
  if (protocol === null || metaData === null) throw new TypeError('a table without protocol or metadata');
  const young = [...tombstones.values()].filter(
    (tombstone) => (tombstone.deletionTimestamp ?? 0) > now - TOMBSTONES,
  );
  return [
    { protocol },
    { metaData },
    ...Array.from(txns.values(), (txn) => ({ txn })),
    ...young.map((remove) => ({ remove: { ...remove, dataChange: false } })),
    ...Array.from(files.values(), (add) => ({ add: { ...add, dataChange: false } })),
  ];
}

/** A value as the writer takes it: integers as bigint, maps as they are. */
function stored(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, field]: [string, unknown]) => {
      if (isRecord(field)) return [name, MAPS.has(name) ? field : stored(field)];
      if (typeof field === 'number' && !name.startsWith('min')) return [name, BigInt(field)];
      return [name, field];
    }),
  );
}

const MAPS: ReadonlySet<string> = new Set(['partitionValues', 'tags', 'options', 'configuration']);

/** A value as it is in the log: integers as numbers, without nulls. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      if (field === null || field === undefined) return [];
      return [[name, MAPS.has(name) ? field : plain(field)]];
    }),
  );
}
