import { resolve } from 'node:path';
import { MANIFEST } from '../../core/archive.ts';
import type { ErasableStore } from '../../core/erasure.ts';
import { messageOf } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { JournalEvent } from '../../core/event.ts';
import {
  type ClaimCheck,
  type Delivery,
  type Flushed,
  type SendResult,
  type Sink,
  type SinkContext,
  type SinkLimits,
  type SinkTrouble,
} from '../../core/sink.ts';
import { onAbort, unlessAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { aboutBytes } from '../../lib/units.ts';
import { ABORTED, Appender } from './append.ts';
import type { Archive, FinishStep } from './archive.ts';
import { ArchiveKeys } from './archive-keys.ts';
import type { FilesOptions } from './config.ts';
import { DeliveredParts } from './delivered-parts.ts';
import { DirectSink } from './direct-sink.ts';
import { Finisher } from './finisher.ts';
import { FolderArchive } from './folder-archive.ts';
import { HeldParts } from './held-parts.ts';
import { keepEvent } from './keep.ts';
import { Lanes } from './lanes.ts';
import { OpenFolder } from './writer-folders.ts';
import { NOT_REMOVED, type Part } from './part.ts';
import type { PartAnswers } from './part-answers.ts';
import { Partitioner } from './partition.ts';
import { recoverFolder, type RecoveredPart } from './recover.ts';
import { RecoveredIds } from './recovered-ids.ts';
import { ObjectArchive } from './object-archive.ts';
import { FolderTroubles, openError } from './troubles.ts';
import { Watch } from './watch.ts';

/** Closed parts that may wait for a store, in sizes of a full part. */
const MOST_WAITING = 16;
/** Result of an event that is to be written, until it is. */
const UNWRITTEN: SendResult = { status: 'retry', reason: 'not written' };

export function createSink(options: FilesOptions, context: SinkContext): Sink {
  // Held events wait in a journal; without one each batch is put at once.
  const isDirect = isStoreUrl(options.path) && (options.spool === null || context.takeBack === undefined);
  return isDirect ? new DirectSink(options, context) : new FilesSink(options, context);
}

/** For tests only. */
export interface FilesHooks {
  /** Called after each step of finishing a file; may kill the process. */
  readonly onStep?: (step: FinishStep) => void;
  /** Part files held open at once; the least recently used are closed. */
  readonly openFiles?: number;
}

/**
 * Appends records to one part file for each partition, and turns parts into finished, compressed files with a line in the
 * manifest.
 *
 * Modes: `new` → `open` (by `open`, after mending what a crash left) → `closed` (by `close`: every part is finished; if the signal
 * aborts first, the next `open` continues the others). A failed `open` leaves it `new`.
 *
 * After a crash a part is continued, and its age counts from then. A part that another program removes is lost: `PartAnswers`
 * says what happens to its events. A folder that is removed is made again.
 */
export class FilesSink implements Sink {
  readonly limits: SinkLimits;
  readonly #options: FilesOptions;
  readonly #context: SinkContext;
  readonly #partitioner: Partitioner;
  readonly #folder: OpenFolder;
  readonly #archive: Archive;
  readonly #answers: PartAnswers;
  /** Bytes of closed parts above which no more events are accepted. */
  readonly #mostWaiting: number;
  readonly #keys: ArchiveKeys;
  readonly #finisher: Finisher;
  readonly #lanes: Lanes;
  readonly #appender: Appender;
  readonly #troubles: FolderTroubles;
  readonly #watch: Watch;
  /** Ends work on the archive. */
  readonly #abort = new AbortController();
  #mode: 'new' | 'open' | 'closed' = 'new';
  #opening: Promise<void> | null = null;
  #remaking: Promise<void> | null = null;
  #recovered: RecoveredIds;

  constructor(options: FilesOptions, context: SinkContext, hooks: FilesHooks = {}) {
    const { path, spool, compress, encrypt, partitionBy, rotate } = options;
    const { clock, log } = context;
    this.limits = {
      batchCount: 1000,
      batchBytes: 8 * 2 ** 20,
      eventBytes: Number.POSITIVE_INFINITY,
      // While one batch is written the next is sealed.
      inFlight: encrypt === undefined ? 1 : 2,
      order: 'user',
      batchBy: 'mixed',
      // Each send syncs a file, on the disk that the journal is waiting for too.
      linger: 25,
    };
    this.#options = options;
    this.#context = context;
    this.#recovered = new RecoveredIds(clock);
    this.#partitioner = new Partitioner(partitionBy);
    this.#keys = new ArchiveKeys(options, context);
    this.#troubles = new FolderTroubles(clock);
    if (spool === null || !isStoreUrl(path)) {
      this.#folder = new OpenFolder(resolve(path), log, [MANIFEST]);
      this.#archive = new FolderArchive(path, context);
      this.#answers = new DeliveredParts(context, this.#troubles);
      this.#mostWaiting = Number.POSITIVE_INFINITY;
    } else {
      this.#folder = new OpenFolder(resolve(spool), log);
      this.#archive = new ObjectArchive(path, context, this.#abort.signal);
      this.#answers = new HeldParts(context, this.#troubles, compress === 'none');
      this.#mostWaiting = MOST_WAITING * rotate.bytes;
    }
    this.#finisher = new Finisher(context, {
      archive: this.#archive,
      compression: compress,
      signal: this.#abort.signal,
      onStep: hooks.onStep ?? (() => undefined),
      onFinished: (part) => {
        this.#answers.finished(part);
        this.#recovered.finished(part);
      },
      onLost: (part) => this.#lost(part, 'it was to be finished'),
    });
    const events = {
      onClosed: (part: Part) => this.#finisher.add(part),
      onLost: (part: Part, why: string) => this.#lost(part, why),
    };
    this.#lanes = new Lanes(context, rotate, events, hooks.openFiles);
    const parts = { folder: this.#folder, lanes: this.#lanes, answers: this.#answers };
    const remake = (): Promise<void> => this.#remake();
    this.#appender = new Appender({ ...parts, log, keys: this.#keys, remake });
    const onUsable = (): void => this.#finisher.retry();
    this.#watch = new Watch({ ...parts, clock, troubles: this.#troubles, remake, onUsable });
  }

  /**
   * A call while another runs is the same one.
   * @throws MillraceError folder_unwritable; keys_unusable, keys_in_use or master_key_wrong with `encrypt`
   */
  open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #open(): Promise<void> {
    if (this.#mode === 'open') return;
    await this.#keys.open();
    this.#recovered = new RecoveredIds(this.#context.clock);
    try {
      await this.#takeFolder(true);
    } catch (error) {
      this.#folder.release();
      await this.#keys.close();
      throw openError(this.#options.path, this.#folder.path, error);
    }
    this.#mode = 'open';
    this.#watch.start();
  }

  troubles(): readonly SinkTrouble[] {
    const all = [...this.#troubles.list(), ...this.#finisher.troubles()];
    return all.toSorted((one, other) => one.since - other.since);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const unwritten = this.#full() ?? UNWRITTEN;
    const results: SendResult[] = [];
    /** Deliveries to be written, by folder, each with its index in the batch. */
    const groups = new Map<string, { readonly indexes: number[]; readonly deliveries: Delivery[] }>();
    for (const [index, delivery] of batch.entries()) {
      const written = this.#onDisk(delivery);
      results.push(written ?? unwritten);
      if (written !== null || unwritten !== UNWRITTEN) continue;
      const folder = this.#partitioner.folderOf(delivery.event, delivery.destination);
      const { indexes, deliveries } = getOrMake(groups, folder, () => ({ indexes: [], deliveries: [] }));
      indexes.push(index);
      deliveries.push(delivery);
    }
    const sends = Array.from(groups, async ([folder, { indexes, deliveries }]) => {
      const result = await unlessAborted(this.#appender.append(folder, deliveries, signal), signal, ABORTED);
      for (const index of indexes) results[index] = result;
    });
    await Promise.all(sends);
    return results;
  }

  async keep(event: JournalEvent): Promise<ClaimCheck> {
    this.#checkOpen();
    return keepEvent(this.#archive, event, this.#options);
  }

  async settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    if (this.#mode !== 'open') return;
    await this.#lanes.each(async (lane) => {
      if (lane.part !== null && (await holds(lane.part.path))) await this.#lanes.closePart(lane);
    });
    await this.#finisher.settle(holds);
  }

  async flush(): Promise<Flushed> {
    this.#checkOpen();
    const lost = await this.#lanes.each((lane) => this.#lanes.closePart(lane));
    const { files, failed } = await this.#finisher.flush();
    return { files, failed: [...lost, ...failed] };
  }

  erasable(): ErasableStore | null {
    return this.#keys.erasable();
  }

  async close(signal: AbortSignal): Promise<void> {
    // An open that still runs would take the folder and the keys, and keep them from the next writer.
    await this.#opening?.catch(() => undefined);
    if (this.#mode !== 'open') return;
    this.#mode = 'closed';
    // A check could take the folder again.
    await this.#watch.stop();
    const forget = onAbort(signal, () => this.#abort.abort());
    await this.#lanes.each((lane) => this.#lanes.closePart(lane));
    const left = await this.#finisher.drain();
    forget();
    if (left > 0)
      this.#context.log.warn({ parts: left }, 'unfinished archive files stay open until the next start');
    this.#abort.abort();
    this.#answers.stop();
    await this.#archive.close();
    this.#folder.release();
    await this.#keys.close();
  }

  /**
   * Takes the folder, mends the parts in it, and finishes them.
   * @param continues whether the newest unfinished part of each partition takes more records instead
   */
  async #takeFolder(continues: boolean): Promise<void> {
    await this.#folder.take();
    await this.#archive.open(this.#folder);
    const found: RecoveredPart[] = [];
    const reading = { ...this.#context, opener: this.#keys.isSealed ? this.#keys.sealer : null };
    for (const { path } of this.#folder.writers)
      found.push(...(await recoverFolder(path, this.#archive, reading)));
    this.#answers.recovered(found);
    await this.#archive.recovered();
    found.sort((a, b) => (a.part.name.stem < b.part.name.stem ? 1 : -1));
    for (const { part, ids, state } of found) {
      const { folder } = part.name;
      const isContinued = continues && state === 'unfinished' && this.#lanes.of(folder).part === null;
      this.#recovered.add(part, ids, isContinued);
      if (isContinued) this.#lanes.assign(this.#lanes.of(folder), part);
      else if (state !== 'listed') {
        await part.close();
        this.#finisher.add(part);
      }
    }
  }

  /** Takes the folder again, or the one that replaced it. Its open parts are found missing one by one. */
  #remake(): Promise<void> {
    this.#remaking ??= this.#takeAgain().finally(() => (this.#remaking = null));
    return this.#remaking;
  }

  async #takeAgain(): Promise<void> {
    const { path } = this.#folder;
    await this.#takeFolder(false);
    const detail = `${path} was removed or replaced; it was created again and is in use. ${this.#answers.afterReplacement}`;
    this.#troubles.happened('folder_replaced', detail);
    this.#context.log.error({ path }, 'the archive folder was removed or replaced; created it again');
  }

  #checkOpen(): void {
    if (this.#mode !== 'open') throw new Error(`${this.#options.path} is not open`);
  }

  async #lost(part: Part, why: string): Promise<void> {
    await this.#answers.lost(part, why);
    try {
      await this.#archive.clear(part.name);
    } catch (error) {
      this.#context.log.warn({ path: part.path, error: messageOf(error) }, NOT_REMOVED);
    }
  }

  /** The result of events while too many bytes wait for the archive, else null. */
  #full(): SendResult | null {
    const waiting = this.#finisher.waiting + this.#lanes.closing;
    if (waiting < this.#mostWaiting) return null;
    const reason = `${aboutBytes(waiting)} wait for ${this.#archive.name}; nothing more is taken until it takes them`;
    return { status: 'retry', reason, sink: true };
  }

  /** The result of an event that a crash left complete in a part before it was noted as delivered, else null. */
  #onDisk({ event, destination }: Delivery): SendResult | null {
    // A replay is meant to write again.
    if (this.#recovered.size === 0 || event.handling.replayId !== undefined) return null;
    const part = this.#recovered.partOf(this.#partitioner.destinationLevel(destination), event);
    return part === null ? null : this.#answers.of(part);
  }
}
