import { hash, createHash } from 'node:crypto';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { readArchiveFile } from '../../archive/read.ts';
import type { ArchiveItem } from '../../archive/read-line.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import type { TableFields } from '../../warehouse/learned/field-sums.ts';
import type { ArchiveFile } from '../archives.ts';
import type { Load } from '../ledger.ts';
import type { LoadOptions } from '../options.ts';
import { keyOf, Shapes } from '../shapes.ts';
import { noteProblem, type StepCounts } from '../step.ts';
import type { LoadedTables } from '../tables.ts';

/** Characters of lines that are packed together. */
const BLOCK = 1024 * 1024;

type ArchiveRecordItem = ArchiveItem & { kind: 'record' };

/** The events of some files and their rows, packed to be brought to BigQuery as one table. Duplicates are told apart there. */
export class Staging {
  readonly counts: StepCounts = { records: 0, duplicates: 0, rejects: 0, problems: 0, erased: 0, rows: {} };
  /** Bytes of records so far. */
  bytes = 0;
  lines = 0;
  /** Names of the tables that there are rows for. */
  readonly kinds = new Set<string>();
  readonly #tables: LoadedTables;
  readonly #opener: RecordOpener | undefined;
  readonly #options: LoadOptions;
  readonly #shapes: Shapes;
  /** The load with which each event came first in this step. */
  readonly #seen = new Map<string, number>();
  readonly #gzip = createGzip();
  readonly #packed: Buffer[] = [];
  readonly #digest = createHash('sha256');
  #block = '';

  constructor(tables: LoadedTables, opener: RecordOpener | undefined, options: LoadOptions) {
    this.#tables = tables;
    this.#opener = opener;
    this.#options = options;
    this.#shapes = new Shapes(tables.known, tables.entries, options);
    this.#gzip.on('data', (bytes: Buffer) => this.#packed.push(bytes));
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#shapes.met();
  }

  /** Reads a file. @returns what the ledger is to say of it */
  async read({ archive, root, file, sha256 }: ArchiveFile, load: number, onBlock: () => void): Promise<Load> {
    const before = this.counts.records;
    let sealed = 0;
    let isWhole = true;
    const { places, signal } = this.#options;
    for await (const item of readArchiveFile(places.at(root), file, { signal, opener: this.#opener })) {
      if (item.kind === 'problem') {
        isWhole &&= item.sealed?.why === 'erased';
        noteProblem(item, this.counts, this.#options);
        continue;
      }
      if (item.sealed) sealed += 1;
      this.counts.records += 1;
      this.bytes += item.text.length;
      this.#add(item, load);
      if (this.#block.length < BLOCK) continue;
      await this.#pack();
      onBlock();
    }
    return {
      load,
      archive,
      file,
      // What could not be read in all its lines is tried again the next time.
      sha256: isWhole ? sha256 : '',
      shape: this.#tables.shape,
      records: this.counts.records - before,
      sealed,
      destroyed: this.#opener?.destroyed ?? 0,
    };
  }

  /** @returns all lines, packed, and a hash of them */
  async finish(): Promise<{ readonly packed: Buffer; readonly digest: string }> {
    await this.#pack();
    this.#gzip.end();
    await finished(this.#gzip);
    return { packed: Buffer.concat(this.#packed), digest: this.#digest.digest('hex') };
  }

  #add(item: ArchiveRecordItem, load: number): void {
    const event = keyOf(item);
    const first = this.#seen.get(event);
    if (first === load) return;
    this.#line('', event, load, '');
    if (first !== undefined) return;
    this.#seen.set(event, load);
    const made = this.#shapes.shape([item]);
    for (const { nth: _, ...reject } of made.rejects) {
      this.counts.rejects += 1;
      this.#options.onReject({ ...reject, file: item.file, line: item.line });
    }
    for (const { definition, lines } of made.tables) {
      this.kinds.add(definition.name);
      for (const line of lines.view().toString().trimEnd().split('\n'))
        this.#line(definition.name, event, load, line);
    }
    this.#shapes.release(made);
  }

  #line(kind: string, event: string, load: number, line: string): void {
    this.#block += `${JSON.stringify({ kind, event, load, line })}\n`;
    this.lines += 1;
  }

  async #pack(): Promise<void> {
    const block = Buffer.from(this.#block);
    this.#block = '';
    this.#digest.update(block);
    if (!this.#gzip.write(block)) await once(this.#gzip, 'drain');
  }
}

/** A short name of what makes a step what it is. */
export function nameOf(parts: unknown): string {
  return hash('sha256', JSON.stringify(parts), 'hex').slice(0, 32);
}
