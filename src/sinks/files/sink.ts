import type { ErasableStore } from '../../core/erasure.ts';
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
import { KeyErasure } from '../../privacy/seal/key-erasure.ts';
import type { Sealer } from '../../privacy/seal/sealer.ts';
import { ABORTED, Appender } from './append.ts';
import type { FilesOptions } from './config.ts';
import { DirectSink } from './direct-sink.ts';
import { Finisher } from './finisher.ts';
import type { ArchiveFolder } from './open-folder.ts';
import { Lanes } from './lanes.ts';
import type { Part } from './part.ts';
import { openSealer } from './open-sealer.ts';
import { Partitioner } from './partition.ts';
import { placesOf } from './places.ts';
import { recoverFolder } from './recover.ts';
import { RecoveredIds } from './recovered-ids.ts';
import type { FinishStep, RecoveredPart, Target } from './archive.ts';
import { FolderTroubles, unopened } from './troubles.ts';
import { Watch } from './watch.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: FilesOptions, context: SinkContext): Sink {
  // What is held waits in a journal; without one each batch is put at once.
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
 * Appends archive records to one plain part file a partition, durably, and turns parts into finished, compressed files
 * with a line in the manifest.
 *
 * Modes: `new` → `open` (by `open`, after mending what a crash left) → `closed` (by `close`: every part is finished,
 * unless the signal aborts; those are taken up by the next `open`). A failed `open` leaves it `new`.
 *
 * A part is taken up again after a crash, and its age counts from then. One that somebody removes takes back what was
 * confirmed for it. The folder is looked at now and then: one that is gone is made again, and what is wrong with it is told.
 */
export class FilesSink implements Sink {
  readonly limits: SinkLimits;
  readonly #options: FilesOptions;
  readonly #context: SinkContext;
  readonly #partitioner: Partitioner;
  readonly #folder: ArchiveFolder;
  readonly #lanes: Lanes;
  readonly #appender: Appender;
  readonly #troubles: FolderTroubles;
  readonly #target: Target;
  readonly #watch: Watch;
  #mode: 'new' | 'open' | 'closed' = 'new';
  #opening: Promise<void> | null = null;
  #remaking: Promise<void> | null = null;
  #recovered: RecoveredIds;
  #finisher: Finisher | null = null;
  #sealer: Sealer | null = null;

  constructor(options: FilesOptions, context: SinkContext, hooks: FilesHooks = {}) {
    this.limits = {
      batchCount: 1000,
      batchBytes: 8 * 2 ** 20,
      eventBytes: Number.POSITIVE_INFINITY,
      // While one batch is written the next is sealed.
      inFlight: options.encrypt === undefined ? 1 : 2,
      order: 'user',
      batchBy: 'mixed',
      // Each send syncs a file, on the disk that the journal is waiting for too.
      linger: 25,
    };
    this.#options = options;
    this.#context = context;
    this.#recovered = new RecoveredIds(context.clock);
    this.#partitioner = new Partitioner(options.partitionBy);
    const { folder, target } = placesOf(options, context, hooks.onStep ?? (() => undefined));
    this.#folder = folder;
    this.#target = target;
    this.#troubles = new FolderTroubles(context.clock);
    const events = {
      onSealed: (part: Part) => this.#finisher?.add(part),
      onLost: (part: Part, why: string) => target.lost(part, why),
    };
    this.#lanes = new Lanes(context, options.rotate, events, hooks.openFiles);
    const { clock, log } = context;
    const [lanes, troubles] = [this.#lanes, this.#troubles];
    const remake = (): Promise<void> => this.#remake();
    const sealer = options.encrypt === undefined ? null : (): Sealer => this.#openedSealer();
    this.#appender = new Appender({ lanes, folder, target, log, sealer, remake });
    const onUsable = (): void => this.#finisher?.retry();
    this.#watch = new Watch({ clock, folder, lanes, troubles, target, remake, onUsable });
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
    this.#sealer = await openSealer(this.#options, this.#context);
    try {
      await this.#recover();
    } catch (error) {
      this.#folder.release();
      await this.#closeSealer();
      throw unopened(this.#options.path, this.#folder.path, error);
    }
    this.#mode = 'open';
    this.#watch.start();
  }

  troubles(): readonly SinkTrouble[] {
    const all = [...this.#troubles.list(), ...(this.#finisher?.troubles() ?? []), ...this.#target.troubles()];
    return all.toSorted((one, other) => one.since - other.since);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const full = this.#target.full((this.#finisher?.waiting ?? 0) + this.#lanes.closing);
    const due: SendResult = full === null ? DUE : { status: 'retry', reason: full, sink: true };
    const results: SendResult[] = [];
    /** What is to be written, by folder, with its places in the batch. */
    const groups = new Map<string, { readonly places: number[]; readonly deliveries: Delivery[] }>();
    for (const [place, delivery] of batch.entries()) {
      const written = this.#onDisk(delivery);
      results.push(written ?? due);
      if (written !== null || due !== DUE) continue;
      const folder = this.#partitioner.folderOf(delivery.event, delivery.destination);
      const { places, deliveries } = getOrMake(groups, folder, () => ({ places: [], deliveries: [] }));
      places.push(place);
      deliveries.push(delivery);
    }
    const sends = Array.from(groups, async ([folder, { places, deliveries }]) => {
      const result = await unlessAborted(this.#appender.append(folder, deliveries, signal), signal, ABORTED);
      for (const place of places) results[place] = result;
    });
    await Promise.all(sends);
    return results;
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    // It would lie there in the clear; `check` refuses such a config.
    if (this.#sealer !== null)
      return Promise.reject(new Error(`${this.#options.path} is sealed: it cannot keep large events`));
    if (this.#mode !== 'open') return Promise.reject(new Error(`${this.#options.path} is not open`));
    return this.#target.keep(event);
  }

  async settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    if (this.#mode !== 'open') return;
    await this.#lanes.each(async (lane) => {
      if (lane.part !== null && (await holds(lane.part.path))) await this.#lanes.seal(lane);
    });
    await this.#finisher?.settle(holds);
  }

  async flush(): Promise<Flushed> {
    if (this.#mode !== 'open' || this.#finisher === null)
      throw new Error(`${this.#options.path} is not open`);
    const lost = await this.#lanes.each((lane) => this.#lanes.seal(lane));
    const { files, failed } = await this.#finisher.flush();
    return { files, failed: [...lost, ...failed] };
  }

  erasable(): ErasableStore | null {
    return this.#sealer === null ? null : KeyErasure.live(this.#context.name, this.#sealer.store);
  }

  async close(signal: AbortSignal): Promise<void> {
    // What is being opened has the folder and the keys in the end, and keeps them from whoever comes next.
    await this.#opening?.catch(() => undefined);
    if (this.#mode !== 'open') return;
    this.#mode = 'closed';
    // It might take the folder again behind us.
    await this.#watch.stop();
    const finisher = this.#finisher;
    const forget = onAbort(signal, () => finisher?.abort());
    await this.#lanes.each((lane) => this.#lanes.seal(lane));
    const left = (await finisher?.drain()) ?? 0;
    forget();
    if (left > 0)
      this.#context.log.warn({ parts: left }, 'unfinished archive files stay open until the next start');
    await this.#target.close();
    this.#folder.release();
    await this.#closeSealer();
  }

  async #recover(): Promise<void> {
    const interrupted = new Set<Part>();
    this.#recovered = new RecoveredIds(this.#context.clock);
    this.#finisher = new Finisher(this.#target, this.#context, {
      onFinished: (part) => {
        this.#target.finished(part);
        if (!interrupted.has(part)) this.#recovered.finished(part);
      },
      onGone: (part) => this.#target.lost(part, 'it was to be finished'),
    });
    for (const { part, ids, state } of await this.#takeFolder()) {
      const lane = this.#lanes.of(part.place.folder);
      const resumed = state === 'unfinished' && lane.part === null;
      this.#recovered.add(part, ids, resumed);
      if (resumed) this.#lanes.assign(lane, part);
      else if (state !== 'listed') {
        interrupted.add(part);
        await part.close();
        this.#finisher.add(part);
      }
    }
  }

  /** @returns what lies in the writers' folders, mended; newest first: it is the one of its partition that is taken up again */
  async #takeFolder(): Promise<readonly RecoveredPart[]> {
    await this.#folder.take();
    const recovery = await this.#target.take(this.#folder);
    const found: RecoveredPart[] = [];
    const reading = { ...this.#context, opener: this.#sealer };
    for (const { path } of this.#folder.writers)
      found.push(...(await recoverFolder(path, recovery, reading)));
    await this.#target.recovered(found);
    return found.sort((a, b) => (a.part.place.stem < b.part.place.stem ? 1 : -1));
  }

  /** Takes the folder anew, or another one that was put in its place. What was open in it is found missing part by part. */
  #remake(): Promise<void> {
    this.#remaking ??= this.#takeAnew().finally(() => (this.#remaking = null));
    return this.#remaking;
  }

  async #takeAnew(): Promise<void> {
    const { log } = this.#context;
    const { path } = this.#folder;
    for (const { part, ids, state } of await this.#takeFolder()) {
      this.#recovered.add(part, ids, false);
      if (state === 'listed') continue;
      await part.close();
      this.#finisher?.add(part);
    }
    const detail = `${path} was removed or replaced; it was created again and is in use. ${this.#target.afterReplacement}`;
    this.#troubles.happened('folder_replaced', detail);
    log.error({ path }, 'the archive folder was removed or replaced; created it again');
  }

  /** What to say of an event that a crash left in a part, complete, before it could be noted as delivered; else null. */
  #onDisk({ event, destination }: Delivery): SendResult | null {
    // A replay is meant to write again what has been written before.
    if (this.#recovered.size === 0 || event.handling.replayId !== undefined) return null;
    const part = this.#recovered.partOf(this.#partitioner.destinationLevel(destination), event);
    return part === null ? null : this.#target.answer(part);
  }

  #openedSealer(): Sealer {
    if (this.#sealer === null) throw new Error('the keys are not open');
    return this.#sealer;
  }

  async #closeSealer(): Promise<void> {
    const sealer = this.#sealer;
    this.#sealer = null;
    await sealer?.close();
  }
}

/** Still to be written. */
const DUE: SendResult = { status: 'retry', reason: 'not written' };
