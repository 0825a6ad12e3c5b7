import { resolve } from 'node:path';
import { ManifestWriter } from '../../archive/manifest-writer.ts';
import type { ErasableStore } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
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
import { onAbort, unlessAborted } from '../../lib/abort.ts';
import { KeyErasure } from '../../seal/key-erasure.ts';
import { Sealer } from '../../seal/sealer.ts';
import { ABORTED, Appender } from './append.ts';
import type { FilesOptions } from './config.ts';
import { Finisher } from './finisher.ts';
import type { FinishStep } from './finish.ts';
import { ArchiveFolder } from './folder.ts';
import { keepEvent } from './keep.ts';
import { Lanes } from './lanes.ts';
import { Losses } from './losses.ts';
import type { Part } from './part.ts';
import { Partitioner } from './partition.ts';
import { recoverFolder, type RecoveredPart } from './recover.ts';
import { RecoveredIds } from './recovered-ids.ts';
import { explain, FolderTroubles } from './troubles.ts';
import { Watch } from './watch.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: FilesOptions, context: SinkContext): Sink {
  return new FilesSink(options, context);
}

const MIB = 2 ** 20;

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
  readonly #hooks: FilesHooks;
  readonly #partitioner: Partitioner;
  readonly #folder: ArchiveFolder;
  readonly #lanes: Lanes;
  readonly #appender: Appender;
  readonly #troubles: FolderTroubles;
  readonly #losses: Losses;
  readonly #watch: Watch;
  #mode: 'new' | 'open' | 'closed' = 'new';
  #opening: Promise<void> | null = null;
  #remaking: Promise<void> | null = null;
  #recovered = new RecoveredIds();
  #manifest: ManifestWriter | null = null;
  #finisher: Finisher | null = null;
  #sealer: Sealer | null = null;

  constructor(options: FilesOptions, context: SinkContext, hooks: FilesHooks = {}) {
    this.limits = {
      batchCount: 1000,
      batchBytes: 8 * MIB,
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
    this.#hooks = hooks;
    this.#partitioner = new Partitioner(options.partitionBy);
    this.#folder = new ArchiveFolder(resolve(options.path), context.log);
    this.#troubles = new FolderTroubles(context.clock);
    this.#losses = new Losses(context);
    const events = {
      onSealed: (part: Part) => this.#finisher?.add(part),
      onLost: (part: Part, why: string) => this.#losses.add(part, why),
    };
    this.#lanes = new Lanes(context, options.rotate, events, hooks.openFiles);
    const { clock, log } = context;
    const [folder, lanes, troubles, losses] = [this.#folder, this.#lanes, this.#troubles, this.#losses];
    const remake = (): Promise<void> => this.#remake();
    const sealer = options.encrypt === undefined ? null : (): Sealer => this.#openedSealer();
    this.#appender = new Appender({ lanes, folder, log, sealer, remake });
    const onUsable = (): void => this.#finisher?.retry();
    this.#watch = new Watch({ clock, folder, lanes, troubles, losses, remake, onUsable });
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
    this.#watch.start();
  }

  troubles(): readonly SinkTrouble[] {
    const all = [...this.#troubles.list(), ...(this.#finisher?.troubles() ?? []), ...this.#losses.troubles()];
    return all.toSorted((one, other) => one.since - other.since);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const results = Array.from(batch, (): SendResult => DELIVERED);
    const due = [...batch.entries()].filter(([, delivery]) => !this.#isOnDisk(delivery));
    const groups = Map.groupBy(due, ([, { event, destination }]) =>
      this.#partitioner.folderOf(event, destination),
    );
    const sends = Array.from(groups, async ([folder, group]) => {
      const own = group.map(([, delivery]) => delivery);
      const result = await unlessAborted(this.#appender.append(folder, own, signal), signal, ABORTED);
      if (result !== DELIVERED) for (const [index] of group) results[index] = result;
    });
    await Promise.all(sends);
    return results;
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    // It would lie there in the clear; `check` refuses such a config.
    if (this.#sealer !== null)
      return Promise.reject(new Error(`${this.#options.path} is sealed: it cannot keep large events`));
    if (this.#mode !== 'open' || this.#manifest === null)
      return Promise.reject(new Error(`${this.#options.path} is not open`));
    return keepEvent(this.#folder.root, event, this.#options.compress !== 'none', this.#manifest);
  }

  async settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    if (this.#mode !== 'open') return;
    await this.#lanes.each(async (lane) => {
      if (lane.part !== null && (await holds(lane.part.path))) await this.#lanes.seal(lane);
    });
    await this.#finisher?.idle();
  }

  async flush(): Promise<Flushed> {
    if (this.#mode !== 'open' || this.#finisher === null)
      throw new Error(`${this.#options.path} is not open`);
    await this.#lanes.each((lane) => this.#lanes.seal(lane));
    return this.#finisher.flush();
  }

  erasable(): ErasableStore | null {
    return this.#sealer === null ? null : KeyErasure.live(this.#context.name, this.#sealer.store);
  }

  async close(signal: AbortSignal): Promise<void> {
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
      const lane = this.#lanes.of(part.place.folder);
      const resumed = recovered.state === 'unfinished' && lane.part === null;
      this.#recovered.add(recovered.part, recovered.ids, resumed);
      if (resumed) {
        this.#lanes.assign(lane, part);
      } else if (recovered.state !== 'listed') {
        interrupted.add(part);
        await part.close();
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
      this.#recovered.add(recovered.part, recovered.ids, false);
      if (recovered.state === 'listed') continue;
      await recovered.part.close();
      this.#finisher?.add(recovered.part);
    }
    const detail = `${path} was removed or replaced; it was created again and is in use. To restore what the journal still holds of its files: millrace replay journal --to ${name}`;
    this.#troubles.happened('folder_replaced', detail);
    log.error({ path }, 'the archive folder was removed or replaced; created it again');
  }

  /** True for an event that a crash left in a part, complete, before it could be noted as delivered. */
  #isOnDisk({ event, destination }: Delivery): boolean {
    if (this.#recovered.size === 0) return false;
    // A replay is meant to write again what has been written before.
    if (event.handling.replayId !== undefined) return false;
    return this.#recovered.has(this.#partitioner.destinationLevel(destination), event);
  }

  async #openSealer(): Promise<void> {
    const { encrypt } = this.#options;
    if (encrypt === undefined) return;
    const ledger = (await this.#context.proof?.())?.ledger ?? null;
    this.#sealer = await Sealer.open(encrypt.store, encrypt.masterKey, ledger);
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
