import { hash } from 'node:crypto';
import { readManifest } from '../../archive/manifest.ts';
import { StoredArchive } from '../../archive/stored-archive.ts';
import { ARCHIVE_BYTES } from '../../archive/write-file.ts';
import { formatRecords } from '../../core/archive-record.ts';
import type { FileLine } from '../../core/archive-manifest.ts';
import type { ErasableStore } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { JournalEvent } from '../../core/event.ts';
import {
  DELIVERED,
  type ClaimCheck,
  type Delivery,
  type Flushed,
  type SendResult,
  type Sink,
  type SinkContext,
  type SinkLimits,
  type SinkTrouble,
} from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { unlessAborted } from '../../lib/abort.ts';
import { Serial } from '../../lib/serial.ts';
import { sealedTypes } from '../../privacy/seal/sealer.ts';
import { ABORTED, newStem } from './append.ts';
import { ArchiveKeys } from './archive-keys.ts';
import type { FilesOptions } from './config.ts';
import { keepEvent } from './keep.ts';
import { fileOf } from './part.ts';
import { lineOf, PartStats } from './part-stats.ts';
import { Partitioner } from './partition.ts';
import { ObjectArchive } from './object-archive.ts';
import { codeOf, explain, waitOf } from './troubles.ts';

const MIB = 2 ** 20;

/** One object of a batch. */
interface BatchObject {
  readonly bytes: Buffer;
  readonly line: Omit<FileLine, 'previous'>;
  /** It is in the store, or an erasure has rewritten or removed it since. */
  isPut: boolean;
}

/** What one `send` writes. */
interface BatchWrite {
  readonly objects: readonly BatchObject[];
  /** Keys of its deliveries. */
  readonly keys: readonly string[];
  /** A try was made, and may have put objects whose answer was lost. */
  isTried: boolean;
}

/**
 * Archives to a store without a spool: each batch becomes one object for each partition and lines of the manifest, and is delivered
 * when these are in the store. A write that has failed is completed before any other. Each process has a chain of its own.
 *
 * Modes: `new` → `open` → `closed`. A failed `open` leaves it `new`.
 */
export class DirectSink implements Sink {
  readonly limits: SinkLimits = {
    batchCount: 5000,
    batchBytes: 16 * MIB,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 1,
    order: 'user',
    batchBy: 'mixed',
    // Stores charge for each request.
    linger: 500,
  };
  readonly #options: FilesOptions;
  readonly #context: SinkContext;
  readonly #partitioner: Partitioner;
  readonly #keys: ArchiveKeys;
  readonly #archive: ObjectArchive;
  readonly #serial = new Serial();
  readonly #abort = new AbortController();
  #isOpen = false;
  #unfinished: BatchWrite[] = [];
  /** Keys of deliveries that are in the archive although their `send` has failed. */
  readonly #done = new Set<string>();
  #trouble: SinkTrouble | null = null;

  constructor(options: FilesOptions, context: SinkContext) {
    this.#options = options;
    this.#context = context;
    this.#partitioner = new Partitioner(options.partitionBy);
    this.#keys = new ArchiveKeys(options, context);
    this.#archive = new ObjectArchive(options.path, context, this.#abort.signal);
  }

  /** @throws Error when the store cannot be used now; keys_unusable, keys_in_use or master_key_wrong with `encrypt` */
  async open(signal: AbortSignal): Promise<void> {
    if (this.#isOpen) return;
    await this.#keys.open();
    try {
      await this.#archive.openWithoutSpool(signal);
    } catch (error) {
      throw new Error(explain(error), { cause: error });
    }
    this.#isOpen = true;
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    return unlessAborted(
      this.#serial.run(() => this.#send(batch)),
      signal,
      batch.map(() => ABORTED),
    );
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    return keepEvent(this.#archive, event, this.#options);
  }

  /** Completes failed writes: their objects may be in the store already. */
  settle(): Promise<void> {
    return this.#serial.run(() => this.#finish());
  }

  /** No file is open. It exists because `millrace flush` waits for the events on their way to sinks that have it. */
  flush(): Promise<Flushed> {
    return Promise.resolve({ files: [], failed: [] });
  }

  erasable(): ErasableStore | null {
    return this.#keys.erasable();
  }

  troubles(): readonly SinkTrouble[] {
    return this.#trouble === null ? [] : [this.#trouble];
  }

  async close(signal: AbortSignal): Promise<void> {
    const last = this.#serial.run(() => this.#finish()).catch((error: unknown) => this.#failed(error));
    await unlessAborted(last, signal, undefined);
    this.#abort.abort();
    this.#isOpen = false;
    await this.#archive.close();
    await this.#keys.close();
  }

  async #send(batch: readonly Delivery[]): Promise<SendResult[]> {
    let failure: SendResult = DELIVERED;
    try {
      await this.#finish();
      await this.#write(batch.filter((delivery) => !this.#done.has(keyOf(delivery))));
      this.#trouble = null;
    } catch (error) {
      this.#failed(error);
      const [reason, delayMs] = [explain(error), waitOf(error)];
      failure = { status: 'retry', reason, sink: true, ...(delayMs > 0 ? { delayMs } : {}) };
    }
    return batch.map((delivery) => (this.#done.delete(keyOf(delivery)) ? DELIVERED : failure));
  }

  async #write(due: readonly Delivery[]): Promise<void> {
    const groups = Map.groupBy(due, ({ event, destination }) =>
      this.#partitioner.folderOf(event, destination),
    );
    if (groups.size === 0) return;
    const events = Array.from(groups.values(), (group) => group.map(({ event }) => event));
    const put = async (lines: readonly Buffer[]): Promise<void> => {
      const folders = [...groups.keys()];
      const objects = await Promise.all(
        folders.map((folder, i) => this.#objectOf(folder, events[i] ?? [], lines[i] ?? Buffer.alloc(0))),
      );
      this.#unfinished.push({ objects, keys: due.map(keyOf), isTried: false });
      await this.#finish();
    };
    if (!this.#keys.isSealed) return put(events.map(formatRecords));
    // The keys are held until the objects are in the store.
    return this.#keys.sealer.sealGroups(events, (lines) => put(lines.map((pieces) => Buffer.concat(pieces))));
  }

  async #objectOf(folder: string, events: readonly JournalEvent[], lines: Buffer): Promise<BatchObject> {
    const { compress } = this.#options;
    const stats = new PartStats();
    for (const { type, receivedAt } of this.#keys.isSealed ? sealedTypes(events) : events)
      stats.add(type, receivedAt);
    const stem = newStem(events);
    const bytes = await ARCHIVE_BYTES[compress](lines);
    const file = fileOf({ folder, stem }, compress);
    const facts = { file, bytes: bytes.length, sha256: hash('sha256', bytes, 'hex') };
    return { bytes, line: lineOf(facts, stats, stem), isPut: false };
  }

  /** Completes all writes, one after another. @throws what keeps one from it */
  async #finish(): Promise<void> {
    for (let write = this.#unfinished[0]; write !== undefined; write = this.#unfinished[0]) {
      const { store } = this.#archive;
      if (write.isTried) await skipErased(store, write.objects);
      write.isTried = true;
      const puts = write.objects.map(async (object) => {
        if (object.isPut) return;
        const { file } = object.line;
        const { status } = await store.putIfAbsent(file, { bytes: object.bytes }, this.#abort.signal);
        // Its name is random, so this is no coincidence.
        if (status === 'taken')
          throw new Error(`${store.url}/${file} is there already; it is not overwritten`);
        object.isPut = true;
      });
      const failed = (await Promise.allSettled(puts)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      await this.#archive.list(write.objects.map(({ line }) => line));
      for (const key of write.keys) this.#done.add(key);
      this.#unfinished.shift();
    }
  }

  #failed(error: unknown): void {
    const since = this.#trouble?.since ?? this.#context.clock.now();
    this.#trouble = { code: codeOf(error), detail: explain(error), since };
    const fields = { path: this.#options.path, error: messageOf(error) };
    this.#context.log.warn(fields, 'archive objects could not be written');
  }
}

/**
 * Marks objects as put that an erasure of another process has rewritten or removed since their put had no answer: a rewritten one
 * could never be put again, and a removed one would come back.
 */
async function skipErased(store: ObjectStore, objects: readonly BatchObject[]): Promise<void> {
  if (objects.every(({ isPut }) => isPut)) return;
  const erased = await erasedFiles(store);
  for (const object of objects) object.isPut ||= erased.has(object.line.file);
}

/** Files that erasures have rewritten or removed, by their lines of the manifest. @throws StorageError */
async function erasedFiles(store: ObjectStore): Promise<ReadonlySet<string>> {
  const place = StoredArchive.in(store);
  try {
    const { entries } = await readManifest({ place, manifest: await place.segments() });
    return new Set([...entries].flatMap(([file, line]) => ('erasure' in line ? [file] : [])));
  } catch (error) {
    // The store's own error: `explain` says what to do about it.
    throw error instanceof MillraceError ? (error.cause ?? error) : error;
  } finally {
    await place.close();
  }
}

function keyOf({ event, destination }: Delivery): string {
  return `${event.seq}\n${destination ?? ''}`;
}
