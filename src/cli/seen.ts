import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { readArchive } from '../archive/read.ts';
import { eventOfRecord } from '../core/archive-record.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import type { SchemaReport, SchemaType } from '../core/schema.ts';
import { SchemaMemory } from '../observe/schema/memory.ts';
import { reportOf } from '../observe/schema/report.ts';

import { placed } from './file-reports.ts';
import { note, usageError, type Io } from './io.ts';
import { openerOf, type KeyOptions } from './key-options.ts';
import { withOperations } from './operations.ts';
import { withArchives } from './places.ts';
import { receiverConfigOf } from './config-options.ts';
import { StatusLine } from './status-line.ts';

export interface SeenOptions extends KeyOptions {
  /** Folder or URL of an archive, or a file of `millrace schema --json`; without it the receiver is asked. */
  readonly from?: string | undefined;
}

/** Types and fields of events, from the receiver or an archive. */
export async function seenOf(options: SeenOptions, io: Io): Promise<SchemaReport> {
  const { from } = options;
  if (from === undefined) {
    const report = await withOperations(receiverConfigOf(options, io), (operations) => operations.schema());
    if (!report.enabled) note(io, 'schema.enabled is false: these are events from before');
    if (report.full) note(io, 'there were more event types than are remembered');
    return report;
  }
  return from.endsWith('.json') ? readReport(from) : seenInArchive(from, options, io);
}

const RECORD = z.record(z.string(), z.unknown());
const FIELD = z.object({ path: z.string().startsWith('/'), kinds: RECORD, kinds_since: RECORD });
const REPORT = z.object({
  version: z.literal(1),
  types: z.array(z.object({ type: z.string(), fields: z.array(FIELD) })),
});

/** Reads a file of `millrace schema --json`. @throws MillraceError usage */
export function readReport(file: string): SchemaReport {
  let report: unknown;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw usageError(`${file}: ${messageOf(error)}`, { cause: error });
  }
  if (REPORT.safeParse(report).success) return report as SchemaReport;
  throw usageError(`${file} is not what \`millrace schema --json\` writes`);
}

async function seenInArchive(path: string, options: SeenOptions, io: Io): Promise<SchemaReport> {
  const memory = new SchemaMemory();
  const status = new StatusLine(io);
  const name = status.atMost();
  const opener = await openerOf(options, io);
  let records = 0;
  await withArchives([path], options, io, async (places) => {
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
      status.show(() => `${records} records${status.pace(records, null)}: ${item.file}`);
    }
  });
  if (memory.isFull) note(io, 'there are more event types than are remembered');
  return reportOf(memory, true);
}

/** Types with one of these prefixes; all without prefixes. @throws MillraceError usage for a prefix of no type */
export function onlyTypes({ types }: SchemaReport, prefixes: readonly string[]): readonly SchemaType[] {
  const names = types.map(({ type }) => type);
  for (const prefix of prefixes)
    if (!names.some((type) => type.startsWith(prefix)))
      throw usageError(`no event of a type ${prefix} was seen; there were ${names.join(', ') || 'none'}`);
  if (prefixes.length === 0) return types;
  return types.filter(({ type }) => prefixes.some((prefix) => type.startsWith(prefix)));
}
