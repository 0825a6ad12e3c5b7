import { hash, randomBytes } from 'node:crypto';
import { readManifest } from '../../archive/manifest.ts';
import { ManifestChain } from '../../archive/manifest-chain.ts';
import { StorePlace } from '../../archive/store-place.ts';
import { archiveBytes } from '../../archive/write-file.ts';
import { formatRecords } from '../../core/archive-record.ts';
import type { FileLine } from '../../core/archive-manifest.ts';
import type { ErasableStore } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Event, JournalEvent } from '../../core/event.ts';
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
import { KeyErasure } from '../../privacy/seal/key-erasure.ts';
import { sealedTypes, type Sealer } from '../../privacy/seal/sealer.ts';
import { ABORTED, newStem } from './append.ts';
import type { FilesOptions } from './config.ts';
import { keepInStore } from './keep.ts';
import { lineOf } from './finish.ts';
import { openSealer } from './open-sealer.ts';
import { finishedPlace, PartStats } from './part.ts';
import { Partitioner } from './partition.ts';
import { codeOf, explain, waitOf } from './troubles.ts';

const MIB = 2 ** 20;

/** One object, and whether it is in the store, or was and is an erasure's now. */
interface Piece {
  readonly file: string;
  readonly bytes: Buffer;
  readonly line: Omit<FileLine, 'previous'>;
  isPut: boolean;
}

/** What one `send` writes. One that has failed is carried to its end before anything else: its objects may be there. */
interface Attempt {
  readonly pieces: readonly Piece[];
  /** Of its deliveries. */
  readonly keys: readonly string[];
  /** Whether a try has failed: what it has put may be there. */
  isLate: boolean;
}

/**
 * Archives to a store without a disk: each batch becomes one object a partition and lines of the manifest, and is delivered when
 * these are in the store. Writes under a chain of its own for each process.
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
    // Each send is paid for by the request.
    linger: 500,
  };
  readonly #options: FilesOptions;
  readonly #context: SinkContext;
  readonly #partitioner: Partitioner;
  readonly #serial = new Serial();
  readonly #abort = new AbortController();
  #opened: { readonly store: ObjectStore; readonly chain: ManifestChain } | null = null;
  #sealer: Sealer | null = null;
  #unfinished: Attempt[] = [];
  /** Deliveries of attempts that were finished after their send had failed. */
  readonly #done = new Set<string>();
  #trouble: SinkTrouble | null = null;

  constructor(options: FilesOptions, context: SinkContext) {
    this.#options = options;
    this.#context = context;
    this.#partitioner = new Partitioner(options.partitionBy);
  }

  /** @throws Error when the store cannot be used now; keys_unusable, keys_in_use or master_key_wrong with `encrypt` */
  async open(signal: AbortSignal): Promise<void> {
    if (this.#opened !== null) return;
    const { name, openStore, log, proof } = this.#context;
    if (openStore === undefined) throw new Error(`${this.#options.path}: no object store can be used here`);
    this.#sealer ??= await openSealer(this.#options, this.#context);
    const store = await openStore(this.#options.path);
    const writer = randomBytes(6).toString('hex');
    try {
      await store.probe(signal);
      await (await proof?.())?.heads.noteWriter(store.url, { sink: name });
      const chain = new ManifestChain({
        store,
        writer,
        log,
        proof,
        folder: null,
        signal: this.#abort.signal,
      });
      await chain.open();
      this.#opened = { store, chain };
    } catch (error) {
      await store.close();
      throw new Error(explain(error), { cause: error });
    }
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    return unlessAborted(
      this.#serial.run(() => this.#send(batch)),
      signal,
      batch.map(() => ABORTED),
    );
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    const { path, compress } = this.#options;
    if (this.#sealer !== null)
      return Promise.reject(new Error(`${path} is sealed: it cannot keep large events`));
    if (this.#opened === null) return Promise.reject(new Error(`${path} is not open`));
    const { store, chain } = this.#opened;
    return keepInStore(store, event, compress !== 'none', { chain, signal: this.#abort.signal });
  }

  /** Nothing is open: what has failed may be in the store, or come there. */
  settle(): Promise<void> {
    return this.#serial.run(() => this.#finish());
  }

  /** No file is open, but who asks for readable files wants those of events still on their way: `flush` waits for its sinks. */
  flush(): Promise<Flushed> {
    return Promise.resolve({ files: [], failed: [] });
  }

  erasable(): ErasableStore | null {
    return this.#sealer === null ? null : KeyErasure.live(this.#context.name, this.#sealer.store);
  }

  troubles(): readonly SinkTrouble[] {
    return this.#trouble === null ? [] : [this.#trouble];
  }

  async close(signal: AbortSignal): Promise<void> {
    const opened = this.#opened;
    const last = this.#serial.run(() => this.#finish()).catch((error: unknown) => this.#failed(error));
    await unlessAborted(last, signal, undefined);
    this.#abort.abort();
    this.#opened = null;
    await opened?.store.close();
    const sealer = this.#sealer;
    this.#sealer = null;
    await sealer?.close();
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
    await this.#withLines(groups, async (lines) => {
      const pieces = await Promise.all(
        [...groups].map(([folder, own], i) => this.#pieceOf(folder, own, lines[i] ?? Buffer.alloc(0))),
      );
      this.#unfinished.push({ pieces, keys: due.map(keyOf), isLate: false });
      await this.#finish();
    });
  }

  /** The lines of each group, sealed if they are to be; the keys are held until `write` has settled. */
  #withLines(
    groups: ReadonlyMap<string, readonly Delivery[]>,
    write: (lines: readonly Buffer[]) => Promise<void>,
  ): Promise<void> {
    const events = Array.from(groups.values(), (group) => group.map(({ event }) => event));
    if (this.#sealer === null) return write(events.map(formatRecords));
    return this.#sealer.sealGroups(events, (lines) => write(lines.map((pieces) => Buffer.concat(pieces))));
  }

  async #pieceOf(folder: string, group: readonly Delivery[], lines: Buffer): Promise<Piece> {
    const { compress } = this.#options;
    const events = group.map(({ event }) => event);
    const counted: readonly Pick<Event, 'type' | 'receivedAt'>[] =
      this.#sealer === null ? events : sealedTypes(events);
    const stats = new PartStats();
    for (const { type, receivedAt } of counted) stats.add(type, receivedAt);
    const place = { openFolder: '', folder, stem: newStem(events) };
    const file = finishedPlace(place, compress).name;
    const bytes = await archiveBytes(lines, compress);
    const facts = { bytes: bytes.length, sha256: hash('sha256', bytes, 'hex') };
    return { file, bytes, line: lineOf({ stats, place }, file, facts), isPut: false };
  }

  /** Carries every attempt to its end. @throws what keeps one from it */
  async #finish(): Promise<void> {
    for (let attempt = this.#unfinished[0]; attempt !== undefined; attempt = this.#unfinished[0]) {
      if (this.#opened === null) throw new Error(`${this.#options.path} is not open`);
      const { store, chain } = this.#opened;
      const { signal } = this.#abort;
      if (attempt.isLate) await passOverErased(store, attempt.pieces);
      attempt.isLate = true;
      const puts = attempt.pieces.map(async (piece) => {
        if (piece.isPut) return;
        const { status } = await store.putIfAbsent(piece.file, { bytes: piece.bytes }, signal);
        // Its name is random: this is nobody's chance.
        if (status === 'taken')
          throw new Error(`${store.url}/${piece.file} is there already; it is not overwritten`);
        piece.isPut = true;
      });
      const failed = (await Promise.allSettled(puts)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      await chain.append(attempt.pieces.map(({ line }) => line));
      for (const key of attempt.keys) this.#done.add(key);
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
 * Somebody else's erasure may have been in an object whose put had no answer: rewritten it would be in the way for good, and
 * removed it would come back. Its own line stands above ours.
 */
async function passOverErased(store: ObjectStore, pieces: readonly Piece[]): Promise<void> {
  if (pieces.every(({ isPut }) => isPut)) return;
  const erased = await erasedFiles(store);
  for (const piece of pieces) piece.isPut ||= erased.has(piece.file);
}

/** Files of an archive in a store that erasures have rewritten or removed, as their lines of the manifest say. @throws StorageError */
async function erasedFiles(store: ObjectStore): Promise<ReadonlySet<string>> {
  const place = new StorePlace(store.url, () => Promise.resolve(store));
  try {
    const { entries } = await readManifest({ place, manifest: await place.segments() });
    return new Set([...entries].flatMap(([file, line]) => ('erasure' in line ? [file] : [])));
  } catch (error) {
    // What to do about it is said of the sink, as of all that its store answers.
    throw error instanceof MillraceError ? (error.cause ?? error) : error;
  } finally {
    await place.close();
  }
}

function keyOf({ event, destination }: Delivery): string {
  return `${event.seq}\n${destination ?? ''}`;
}
