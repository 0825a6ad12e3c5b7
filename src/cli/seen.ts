import { readFileSync } from 'node:fs';
import { readArchive } from '../archive/read.ts';
import { eventOfRecord } from '../core/archive-record.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import type { SchemaReport, SchemaType } from '../core/schema.ts';
import { isRecord } from '../lib/is-record.ts';
import { SchemaMemory } from '../observe/schema/memory.ts';
import { reportOf } from '../observe/schema/report.ts';
import { asOwner } from './as-owner.ts';
import { placed } from './file-reports.ts';
import { note, usageError, type Io } from './io.ts';
import { openerOf, type KeyOptions } from './key-options.ts';
import { withOperations } from './operations.ts';
import { storageOf, withPlaces } from './places.ts';
import { receiverConfigOf } from './config-options.ts';
import { StatusLine } from './status-line.ts';

export interface SeenOptions extends KeyOptions {
  /** A folder or URL of an archive, or a file that `millrace schema --json` has written; left out, the receiver's journal. */
  readonly from?: string | undefined;
}

/** What events look like: as the receiver remembers, or as an archive has them. */
export async function seenOf(options: SeenOptions, io: Io): Promise<SchemaReport> {
  const { from } = options;
  if (from === undefined) {
    const report = await withOperations(asOwner(receiverConfigOf(options, io)), (operations) =>
      operations.schema(),
    );
    if (!report.enabled) note(io, 'schema.enabled is false: this is what was seen before');
    if (report.full) note(io, 'there were more event types than are remembered');
    return report;
  }
  return from.endsWith('.json') ? readReport(from) : seenInArchive(from, options, io);
}

/** What `millrace schema --json` has written. @throws MillraceError usage */
export function readReport(file: string): SchemaReport {
  let report: unknown;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw usageError(`${file}: ${messageOf(error)}`, { cause: error });
  }
  if (
    isRecord(report) &&
    report['version'] === 1 &&
    Array.isArray(report['types']) &&
    report['types'].every(isType)
  )
    return report as unknown as SchemaReport;
  throw usageError(`${file} is not what \`millrace schema --json\` writes`);
}

function isType(value: unknown): boolean {
  if (!isRecord(value) || typeof value['type'] !== 'string' || !Array.isArray(value['fields'])) return false;
  return value['fields'].every(
    (field) =>
      isRecord(field) &&
      typeof field['path'] === 'string' &&
      field['path'].startsWith('/') &&
      isRecord(field['kinds']) &&
      isRecord(field['kinds_since']),
  );
}

async function seenInArchive(path: string, options: SeenOptions, io: Io): Promise<SchemaReport> {
  const memory = new SchemaMemory();
  const status = new StatusLine(io);
  const name = status.atMost();
  const opener = await openerOf(options, io);
  let records = 0;
  await withPlaces(storageOf(options, io, [path]), async (places) => {
    for await (const item of readArchive(path, { opener, signal: io.signal, places })) {
      if (item.kind === 'problem') {
        if (item.sealed?.why === 'no_keys')
          throw new MillraceError('archive_sealed', `${item.file}: ${item.reason}`);
        if (item.sealed === undefined) name(`${placed(item.file, item.line)}: ${item.reason}`);
        continue;
      }
      const event = eventOfRecord(item.record, item.body);
      const known = memory.count(event.type, event.receivedAt, event);
      if (known !== null) memory.look(known, event);
      records += 1;
      if (records % 1000 === 0) status.show(() => `${records} records: ${item.file}`);
    }
  });
  if (memory.isFull) note(io, 'there are more event types than are remembered');
  return reportOf(memory, true);
}

/** Those whose types begin so; all without beginnings. @throws MillraceError usage when one of them begins no type */
export function onlyTypes({ types }: SchemaReport, beginnings: readonly string[]): readonly SchemaType[] {
  for (const beginning of beginnings)
    if (!types.some(({ type }) => type.startsWith(beginning)))
      throw usageError(
        `no event of a type ${beginning} was seen; there were ${types.length === 0 ? 'none' : types.map(({ type }) => type).join(', ')}`,
      );
  if (beginnings.length === 0) return types;
  return types.filter(({ type }) => beginnings.some((beginning) => type.startsWith(beginning)));
}
