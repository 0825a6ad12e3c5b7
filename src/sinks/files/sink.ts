import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { ManifestWriter } from '../../archive/manifest-writer.ts';
import { formatRecords } from '../../core/archive-record.ts';
import type { ErasableStore } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { JournalEvent } from '../../core/event.ts';
import {
  DELIVERED,
  type ClaimCheck,
  type Delivery,
  type SendResult,
  type Sink,
  type SinkContext,
  type SinkTrouble,
} from '../../core/sink.ts';
import { ensureFolder, errorCode } from '../../lib/durable.ts';
import { Serial } from '../../lib/serial.ts';
import { KeyErasure } from '../../seal/key-erasure.ts';
import { sealedTypes, Sealer } from '../../seal/sealer.ts';
import type { FilesOptions } from './config.ts';
import { Finisher } from './finisher.ts';
import type { FinishStep } from './finish.ts';
import { ArchiveFolder } from './folder.ts';
import { keepEvent } from './keep.ts';
import { Losses } from './losses.ts';
import { Part, PartGone } from './part.ts';
import { Partitioner } from './partition.ts';
import { recoverFolder, type RecoveredPart } from './recover.ts';
import { RecoveredIds } from './recovered-ids.ts';
import { ABORTED, retryAfter, unlessAborted } from './results.ts';
import { explain, FolderTroubles } from './troubles.ts';

const MIB = 2 ** 20;
const CREATE_TRIES = 3;
const OPEN_FILES = 64;
/** Milliseconds between two looks at what nobody may be writing to. */
const LOOK_EVERY = 10_000;

const UNUSABLE = 'folder_unusable';

/** For tests only. */
export interface FilesHooks {
  /** Called after each step of finishing a file; may kill the process. */
  readonly onStep?: (step: FinishStep) => void;
  /** Part files held open at once; the least recently used are closed. */
  readonly openFiles?: number;
}

/** One partition: what happens to its open part happens here, one thing at a time. */
interface Lane {
  readonly folder: string;
  readonly serial: Serial;
  part: Part | null;
  /** Monotonic time at which the part is old enough to be finished. */
  due: number;
  cancelTimer: () => void;
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
  readonly limits = {
    batchCount: 1000,
    batchBytes: 8 * MIB,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 1,
    order: 'user',
    batchBy: 'mixed',
    // Each send syncs a file, on the disk that the journal is waiting for too.
    linger: 25,
  } as const;

  readonly #options: FilesOptions;
  readonly #context: SinkContext;
  readonly #hooks: FilesHooks;
  readonly #partitioner: Partitioner;
  readonly #lanes = new Map<string, Lane>();
  /** Parts with an open handle, least recently used first. */
  readonly #handles = new Map<Part, Lane>();
  readonly #folder: ArchiveFolder;
  readonly #troubles: FolderTroubles;
  readonly #losses: Losses;
  #mode: 'new' | 'open' | 'closed' = 'new';
  #opening: Promise<void> | null = null;
  #remaking: Promise<void> | null = null;
  #cancelLook: () => void = () => undefined;
  #looking: Promise<void> = Promise.resolve();
  #recovered = new RecoveredIds();
  #manifest: ManifestWriter | null = null;
  #finisher: Finisher | null = null;
  #sealer: Sealer | null = null;

  constructor(options: FilesOptions, context: SinkContext, hooks: FilesHooks = {}) {
    this.#options = options;
    this.#context = context;
    this.#hooks = hooks;
    this.#partitioner = new Partitioner(options.partitionBy);
    this.#folder = new ArchiveFolder(resolve(options.path), context.log);
    this.#troubles = new FolderTroubles(context.clock);
    this.#losses = new Losses(context);
  }

  /**
   * A call while another is under way is the same one.
   * @throws MillraceError folder_unwritable; keys_unusable, keys_in_use or master_key_wrong with `encrypt`
   */
  open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #open(): Promise<void> {
    if (this.#mode === 'open') return;
    await this.#openSealer();
    try {
      await this.#folder.take();
      await this.#recover();
    } catch (error) {
      this.#folder.release();
      await this.#closeSealer();
      throw new MillraceError('folder_unwritable', `${this.#folder.path}: ${explain(error)}`, {
        cause: error,
      });
    }
    this.#mode = 'open';
    this.#lookLater();
  }

  troubles(): readonly SinkTrouble[] {
    const all = [...this.#troubles.list(), ...(this.#finisher?.troubles() ?? []), ...this.#losses.troubles()];
    return all.toSorted((one, other) => one.since - other.since);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const results = Array.from(batch, (): SendResult => DELIVERED);
    const groups = new Map<string, number[]>();
    for (const [index, { event, destination }] of batch.entries()) {
      if (this.#isOnDisk(batch[index])) continue;
      const folder = this.#partitioner.folderOf(event, destination);
      const group = groups.get(folder);
      if (group === undefined) groups.set(folder, [index]);
      else group.push(index);
    }
    const sends = Array.from(groups, async ([folder, indexes]) => {
      const own = indexes.flatMap((index) => batch[index] ?? []);
      const result = await unlessAborted(this.#append(folder, own, signal), signal);
      if (result !== DELIVERED) for (const index of indexes) results[index] = result;
    });
    await Promise.all(sends);
    return results;
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    // It would lie there in the clear; `check` refuses such a config.
    if (this.#sealer !== null)
      return Promise.reject(new Error(`${this.#options.path} is sealed: it keeps no events`));
    if (this.#mode !== 'open' || this.#manifest === null)
      return Promise.reject(new Error(`${this.#options.path} is not open`));
    return keepEvent(this.#folder.root, event, this.#options.compress !== 'none', this.#manifest);
  }

  async settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    if (this.#mode !== 'open') return;
    const settleLane = async (lane: Lane): Promise<void> => {
      if (lane.part !== null && (await holds(lane.part.path))) await this.#seal(lane);
    };
    await Promise.all(Array.from(this.#lanes.values(), (lane) => this.#inLane(lane, () => settleLane(lane))));
    await this.#finisher?.idle();
  }

  erasable(): ErasableStore | null {
    return this.#sealer === null ? null : KeyErasure.live(this.#context.name, this.#sealer.store);
  }

  async close(signal: AbortSignal): Promise<void> {
    if (this.#mode !== 'open') return;
    this.#mode = 'closed';
    this.#cancelLook();
    // It might take the folder again behind us.
    await this.#looking;
    const finisher = this.#finisher;
    const stop = (): void => finisher?.abort();
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    await Promise.all(Array.from(this.#lanes.values(), (lane) => this.#inLane(lane, () => this.#seal(lane))));
    const left = (await finisher?.drain()) ?? 0;
    signal.removeEventListener('abort', stop);
    if (left > 0)
      this.#context.log.warn({ parts: left }, 'unfinished archive files are left for the next start');
    this.#folder.release();
    await this.#closeSealer();
  }

  async #recover(): Promise<void> {
    const { log, clock } = this.#context;
    const { root } = this.#folder;
    const manifest = await this.#openManifest();
    const found = await this.#unfinished(manifest);
    const interrupted = new Set<Part>();
    this.#recovered = new RecoveredIds();
    const { compress: compression } = this.#options;
    const onStep = this.#hooks.onStep ?? (() => undefined);
    this.#finisher = new Finisher({ root, manifest, compression, log, onStep }, clock, {
      onFinished: (part) => {
        if (!interrupted.has(part)) this.#recovered.finished(part);
      },
      onGone: (part) => this.#losses.add(part, 'it was to be finished'),
    });
    // Newest first: it is the one of its partition that is taken up again.
    found.sort((a, b) => (a.part.place.stem < b.part.place.stem ? 1 : -1));
    for (const recovered of found) {
      const { part } = recovered;
      const lane = this.#lane(part.place.folder);
      const resumed = recovered.state === 'unfinished' && lane.part === null;
      this.#recovered.add(recovered, resumed);
      if (resumed) {
        this.#assign(lane, part);
      } else if (recovered.state !== 'listed') {
        interrupted.add(part);
        await part.seal();
        this.#finisher.add(part);
      }
    }
  }

  async #openManifest(): Promise<ManifestWriter> {
    const manifest = new ManifestWriter(this.#folder.root, this.#context.log, this.#context.proof);
    await manifest.repair();
    this.#manifest = manifest;
    return manifest;
  }

  /** What lies in the writers' folders, mended. */
  async #unfinished(manifest: ManifestWriter): Promise<RecoveredPart[]> {
    const { root, writers } = this.#folder;
    const found: RecoveredPart[] = [];
    for (const { path } of writers)
      found.push(...(await recoverFolder(root, path, manifest, this.#context.log, this.#sealer)));
    return found;
  }

  #lookLater(): void {
    this.#cancelLook = this.#context.clock.after(LOOK_EVERY, () => {
      this.#looking = this.#look().finally(() => {
        if (this.#mode === 'open') this.#lookLater();
      });
    });
  }

  /** Looks after what no event may pass by for long. Never rejects. */
  async #look(): Promise<void> {
    try {
      if (!(await this.#folder.isThere())) await this.#remake();
      await this.#folder.probe();
      this.#troubles.over(UNUSABLE);
    } catch (error) {
      this.#troubles.lasts(UNUSABLE, `${this.#folder.path} cannot be written: ${explain(error)}`);
    }
    await Promise.all(
      Array.from(this.#lanes.values(), (lane) => this.#inLane(lane, () => this.#check(lane))),
    );
    await this.#losses.settle();
  }

  async #check(lane: Lane): Promise<void> {
    const { part } = lane;
    if (part !== null && !(await part.isThere().catch(() => true))) await this.#drop(lane, part);
  }

  /** Takes the folder anew, or another one that was put in its place. What was open in it is found missing part by part. */
  #remake(): Promise<void> {
    this.#remaking ??= this.#takeAnew().finally(() => (this.#remaking = null));
    return this.#remaking;
  }

  async #takeAnew(): Promise<void> {
    const { log, name } = this.#context;
    const { path } = this.#folder;
    await this.#folder.take();
    const manifest = await this.#openManifest();
    this.#finisher?.moveTo({ root: this.#folder.root, manifest });
    for (const recovered of await this.#unfinished(manifest)) {
      this.#recovered.add(recovered, false);
      if (recovered.state === 'listed') continue;
      await recovered.part.seal();
      this.#finisher?.add(recovered.part);
    }
    const detail = `${path} was removed or replaced; it was made again, and is written to. What the journal still holds of the files it had comes back by: millrace replay journal --to ${name}`;
    this.#troubles.happened('folder_replaced', detail);
    log.error({ path }, 'the archive folder was removed or replaced; made again');
  }

  /** True for an event that a crash left in a part, complete, before it could be noted as delivered. */
  #isOnDisk(delivery: Delivery | undefined): boolean {
    if (delivery === undefined || this.#recovered.size === 0) return false;
    const { event, destination } = delivery;
    // A replay is meant to write again what has been written before.
    if (event.handling.replayId !== undefined) return false;
    return this.#recovered.has(this.#partitioner.destinationLevel(destination), event);
  }

  #append(folder: string, batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult> {
    const lane = this.#lane(folder);
    return this.#inLane(lane, async () => {
      for (let tries = 1; ; tries += 1) {
        if (signal.aborted) return ABORTED;
        try {
          await this.#appendIn(lane, batch);
          return DELIVERED;
        } catch (error) {
          const { part } = lane;
          this.#context.log.warn({ folder, error: explain(error) }, 'archive file could not be written');
          if (part !== null && part.mode !== 'open') this.#handles.delete(part);
          if (part === null || !(error instanceof PartGone)) return retryAfter(error);
          // Nothing can bring back what somebody has deleted; what comes next must not wait for it.
          await this.#drop(lane, part);
          if (tries === CREATE_TRIES) return retryAfter(error);
        }
      }
    });
  }

  async #appendIn(lane: Lane, batch: readonly Delivery[]): Promise<void> {
    // Before the append, never after: what was written last is then in a part, where a restart looks for it.
    if (this.#isDue(lane)) await this.#seal(lane);
    const events = batch.map(({ event }) => event);
    const part = lane.part ?? (await this.#create(lane, events));
    this.#touch(part, lane);
    await this.#write(part, events);
    part.destination = batch[0]?.destination ?? null;
    part.seqs.add(events.map(({ seq }) => seq));
  }

  /** Lets go of a part that is not there any more, and of what was confirmed for it. */
  async #drop(lane: Lane, part: Part): Promise<void> {
    lane.cancelTimer();
    lane.part = null;
    this.#handles.delete(part);
    await part.release().catch(() => undefined);
    await this.#losses.add(part, 'it was removed, replaced or cut by somebody else');
  }

  async #write(part: Part, events: readonly JournalEvent[]): Promise<void> {
    if (this.#options.encrypt === undefined) return await part.append(formatRecords(events), events);
    if (this.#sealer === null) throw new Error('the keys are not open');
    await part.append(await this.#sealer.seal(events), sealedTypes(events));
  }

  #isDue(lane: Lane): boolean {
    if (lane.part === null) return false;
    return lane.part.length >= this.#options.rotate.bytes || this.#context.clock.monotonic() >= lane.due;
  }

  async #create(lane: Lane, events: readonly JournalEvent[]): Promise<Part> {
    const received = new Date(events[0]?.receivedAt ?? 0).toISOString().replaceAll(/[-:.]/g, '');
    const stem = `${received}-${randomBytes(6).toString('hex')}`;
    for (let tries = 1; ; tries += 1) {
      const part = new Part({ openFolder: this.#folder.openFolder, folder: lane.folder, stem });
      try {
        await ensureFolder(part.place.openFolder, lane.folder);
        await part.create();
        this.#assign(lane, part);
        return part;
      } catch (error) {
        // The folder was empty, and removed behind the part finished before this one. Or all of the archive is gone.
        if (errorCode(error) !== 'ENOENT' || tries === CREATE_TRIES) throw error;
        if (!(await this.#folder.isThere())) await this.#remake();
      }
    }
  }

  #assign(lane: Lane, part: Part): void {
    const { clock } = this.#context;
    const { every } = this.#options.rotate;
    lane.part = part;
    lane.due = clock.monotonic() + every;
    lane.cancelTimer = clock.after(every, () => {
      void this.#inLane(lane, () => (lane.part === part ? this.#seal(lane) : Promise.resolve()));
    });
  }

  /** Takes the part out of its lane and hands it on to be finished. */
  async #seal(lane: Lane): Promise<void> {
    const { part } = lane;
    if (part === null) return;
    lane.cancelTimer();
    lane.part = null;
    this.#handles.delete(part);
    await part.seal().catch((error: unknown) => {
      this.#context.log.warn({ path: part.path, error: messageOf(error) }, 'closing a part failed');
    });
    // Nothing was ever written to it: an append that failed, on a full disk, say.
    if (part.length === 0) await part.discard().catch(() => undefined);
    else this.#finisher?.add(part);
  }

  /** Notes the use of a part's handle and gives back the one unused for longest when there are too many. */
  #touch(part: Part, lane: Lane): void {
    this.#handles.delete(part);
    this.#handles.set(part, lane);
    const [oldest] = this.#handles;
    if (oldest === undefined || this.#handles.size <= (this.#hooks.openFiles ?? OPEN_FILES)) return;
    this.#handles.delete(oldest[0]);
    void this.#inLane(oldest[1], () => oldest[0].release().catch(() => undefined));
  }

  #lane(folder: string): Lane {
    let lane = this.#lanes.get(folder);
    if (lane === undefined) {
      lane = { folder, serial: new Serial(), part: null, due: 0, cancelTimer: () => undefined };
      this.#lanes.set(folder, lane);
    }
    return lane;
  }

  /** Runs a task alone in its lane; forgets the lane once it is idle and empty, for partitions are without end. */
  async #inLane<T>(lane: Lane, task: () => Promise<T>): Promise<T> {
    const result = lane.serial.run(task);
    try {
      return await result;
    } finally {
      if (lane.part === null && lane.serial.size === 0) this.#lanes.delete(lane.folder);
    }
  }

  async #openSealer(): Promise<void> {
    const { encrypt } = this.#options;
    if (encrypt === undefined) return;
    const ledger = (await this.#context.proof?.())?.ledger ?? null;
    this.#sealer = await Sealer.open(encrypt.store, encrypt.masterKey, ledger);
  }

  async #closeSealer(): Promise<void> {
    const sealer = this.#sealer;
    this.#sealer = null;
    await sealer?.close();
  }
}
