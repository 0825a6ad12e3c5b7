import type { Snapshot } from './snapshot.ts';

/** What we know how to write; each says nothing but how a table is restricted. */
const FEATURES: ReadonlySet<string> = new Set(['appendOnly', 'invariants']);

/**
 * What keeps this program from writing a table as it is now, as words; null when nothing does. A program that does not know
 * a feature must not write the table.
 */
export function unsupported({ protocol, metaData }: Snapshot): string | null {
  if (protocol === null || metaData === null) return 'its log has no protocol or no metadata';
  const { minReaderVersion, minWriterVersion, readerFeatures = [], writerFeatures = [] } = protocol;
  const unknown = [...new Set([...(readerFeatures ?? []), ...(writerFeatures ?? [])])].filter(
    (feature) => !FEATURES.has(feature),
  );
  if (unknown.length > 0) return `another writer has given it features: ${unknown.join(', ')}`;
  if (![1, 3].includes(minReaderVersion) || ![1, 2, 7].includes(minWriterVersion))
    return `its protocol is reader version ${minReaderVersion}, writer version ${minWriterVersion}`;
  if (metaData.schemaString.includes('"delta.invariants"')) return 'its columns have invariants';
  if (metaData.configuration['delta.appendOnly'] === 'true')
    return 'it only takes appends (delta.appendOnly)';
  return null;
}
