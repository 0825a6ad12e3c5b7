import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ManifestWriter } from '../../archive/manifest-writer.ts';
import { COMPRESSIONS, type Compression } from '../../core/compression.ts';
import { messageOf } from '../../core/errors.ts';
import type { JournalEvent } from '../../core/event.ts';
import {
  DELIVERED,
  type ClaimCheck,
  type SendResult,
  type SinkContext,
  type SinkTrouble,
} from '../../core/sink.ts';
import { ensureFolder, syncFolder } from '../../lib/durable.ts';
import { compress } from './compress.ts';
import { lineOf, NOT_REMOVED, removePart } from './finish.ts';
import { isThere } from './finished-files.ts';
import type { ArchiveFolder } from './open-folder.ts';
import { keepInFolder } from './keep.ts';
import { Losses } from './delivered-parts.ts';
import { CAREFUL, finishedPlace, type Part, type PartPlace } from './part.ts';
import type { Finishing, FinishStep, Recovery, Target } from './archive.ts';

interface Place {
  readonly root: string;
  readonly manifest: ManifestWriter;
}

/** The archive is the folder in which its parts are open: what is in one of these counts as delivered. */
export class FolderTarget implements Target {
  readonly #context: SinkContext;
  readonly #compression: Compression;
  readonly #onStep: (step: FinishStep) => void;
  readonly #losses: Losses;
  #place: Place | null = null;
  readonly name: string;
  /** What is in a part counts as delivered. */
  readonly care = CAREFUL;

  constructor(
    path: string,
    compression: Compression,
    context: SinkContext,
    onStep: (step: FinishStep) => void,
  ) {
    this.name = path;
    this.#compression = compression;
    this.#context = context;
    this.#onStep = onStep;
    this.#losses = new Losses(context);
  }

  get afterReplacement(): string {
    return `To restore what the journal still holds of its files: millrace replay journal --to ${this.#context.name}`;
  }

  nameOf(file: string): string {
    return join(this.#opened.root, file);
  }

  async take({ root }: ArchiveFolder): Promise<Recovery> {
    const manifest = new ManifestWriter(root, this.#context.log, this.#context.proof);
    await manifest.repair(this.#context.name);
    this.#place = { root, manifest };
    return {
      finishedAs: (place) => finishedAs(root, place),
      listed: (names) => manifest.listed(names),
      dispose: (part) => removePart(part),
      stemOf: () => null,
      clear: () => Promise.resolve(),
      isOwn: () => false,
    };
  }

  recovered(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Written beside the part, synced, renamed, listed in the manifest; only then is the part removed: it is there until everything else is
   * durable.
   */
  async finish(part: Part, { signal, onLeft }: Finishing): Promise<string> {
    const { root, manifest } = this.#opened;
    const onStep = this.#onStep;
    const compression = part.compression ?? this.#compression;
    const name = part.finishedName(compression);
    onStep('sealed');
    const written = await compress(part, compression, signal);
    onStep('written');
    signal.throwIfAborted();
    const folder = await ensureFolder(root, part.place.folder);
    await rename(part.temporaryPath, join(root, name));
    await syncFolder(folder);
    onStep('renamed');
    await manifest.append(lineOf(part, name, written));
    onStep('listed');
    // Not a failure: what is listed is finished, and the next open removes the part at the latest.
    await removePart(part).catch((error: unknown) => {
      this.#context.log.warn({ file: name, error: messageOf(error) }, NOT_REMOVED);
      onLeft(part, () => removePart(part));
    });
    onStep('removed');
    return name;
  }

  finished(): void {}

  answer(): SendResult {
    return DELIVERED;
  }

  full(): null {
    return null;
  }

  lost(part: Part, why: string): Promise<void> {
    return this.#losses.add(part, why);
  }

  keep(event: JournalEvent): Promise<ClaimCheck> {
    const { root, manifest } = this.#opened;
    return keepInFolder(root, event, this.#compression !== 'none', manifest);
  }

  look(): Promise<void> {
    return this.#losses.settle();
  }

  troubles(): readonly SinkTrouble[] {
    return this.#losses.troubles();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  get #opened(): Place {
    if (this.#place === null) throw new Error(`${this.name} is not open`);
    return this.#place;
  }
}

async function finishedAs(root: string, place: PartPlace): Promise<Compression | null> {
  for (const compression of COMPRESSIONS)
    if (await isThere(join(root, finishedPlace(place, compression).name))) return compression;
  return null;
}
