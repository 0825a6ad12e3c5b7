/** Reads the records of an archive that the files sink wrote, with the exact bytes that were signed. */
export { readArchive, type ReadOptions } from '../archive/read.ts';
export type { ArchiveItem } from '../archive/read-line.ts';
export type { ArchiveRecord } from '../core/archive.ts';
export type { OpenedRecord, RecordOpener, SealedWhy } from '../core/sealed-record.ts';
