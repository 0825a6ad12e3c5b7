import { readArchive } from '../archive/read.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import { JsonFault } from '../lib/json-text.ts';
import { Inference, type InferenceOptions, type Inferred } from '../tables/learned/infer/infer.ts';
import type { Tables } from '../tables/tables.ts';
import { memberIfJson } from '../tables/documents.ts';
import type { ExportOptions } from './options.ts';
import { isErased } from './source-bytes.ts';
import type { TableDefinition } from '../tables/definition.ts';
import type { RowTarget } from '../tables/shape/write-rows.ts';
import { Shaper } from '../tables/shape/shape.ts';

/** Event types that are remembered, so that a sender of ever new types cannot fill the memory. */
const MOST_TYPES = 10_000;

/** `tables` are the existing ones. */
export interface InferOptions
  extends
    Pick<InferenceOptions, 'limit'>,
    Pick<ExportOptions, 'tables' | 'paths' | 'places' | 'signal' | 'onProblem'> {
  /** Proposes tables also for events that have one. */
  readonly all: boolean;
  /** Beginnings of event types; empty for all. */
  readonly types: readonly string[];
  readonly opener: RecordOpener | undefined;
  onProgress(records: number, file: string): void;
}

export interface InferSummary extends Inferred {
  readonly records: number;
  /** Events that have a table. */
  readonly covered: number;
  readonly problems: number;
  /** Sealed records whose keys an erasure has destroyed. */
  readonly erased: number;
}

/**
 * Reads archives and proposes tables for their events. Of documents only names, types and counts are kept.
 * @throws MillraceError archive_unreadable, archive_sealed
 */
export async function inferTables(options: InferOptions): Promise<InferSummary> {
  const { paths, places, types, opener, signal } = options;
  const inference = new Inference({ limit: options.limit, taken: new Set(options.tables.keys()) });
  const hasTable = coverageBy(options.tables);
  /** Types of events that have a table. A new table must not take them. */
  const taken = new Set<string>();
  const counts = { records: 0, covered: 0, problems: 0, erased: 0 };
  for (const path of paths) {
    for await (const item of readArchive(path, { opener, signal, places })) {
      if (item.kind === 'problem') {
        if (isErased(item)) counts.erased += 1;
        else {
          counts.problems += 1;
          options.onProblem(item.file, item.line, item.reason);
        }
        continue;
      }
      counts.records += 1;
      if (counts.records % 1000 === 0) options.onProgress(counts.records, item.file);
      const type = item.record.event_type;
      if (types.length > 0 && !types.some((prefix) => type.startsWith(prefix))) continue;
      if (!options.all && hasTable(type, item.body)) {
        counts.covered += 1;
        if (taken.size < MOST_TYPES) taken.add(type);
      } else inference.add(type, () => memberIfJson(item.body, 'data'));
    }
  }
  const isTaken = (beginning: string): boolean => [...taken].some((type) => type.startsWith(beginning));
  return { ...inference.finish(isTaken), ...counts };
}

const NOWHERE: RowTarget = { value: () => undefined, end: () => undefined };

/** Decides which events have a table: by the type and, where the document is only a frame around rows, by its shape. */
function coverageBy(tables: Tables): (type: string, body: Buffer) => boolean {
  const shapers = new Map<TableDefinition, Shaper>();
  const isOfShape = (document: TableDefinition, body: Buffer): boolean => {
    try {
      return getOrMake(shapers, document, () => shaperOf(document)).shapeBody(body);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      return false;
    }
  };
  return (type, body) =>
    tables.documentsOf(type).some((document) => document.ownRows !== false || isOfShape(document, body));
}

function shaperOf(document: TableDefinition): Shaper {
  const tables = (document.nested ?? []).map(({ table }) => table.name);
  const targets = new Map(tables.map((table) => [table, NOWHERE]));
  return new Shaper({ definition: document, document }, { tables, targets, onReject: () => undefined });
}
