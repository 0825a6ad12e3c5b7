import { messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import type { NotedArchive } from '../core/proof.ts';
import type { SinkTrouble } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
import { missingPlace, realOf } from '../privacy/erase/earlier-archives.ts';
import type { Stop } from '../lib/parts.ts';
import { openStore } from '../storage/open.ts';
import type { Base } from './system.ts';

/** Milliseconds between two looks: a disk comes back, a reload leaves an archive behind. */
const EVERY = 10_000;

/** Finishes what sinks of earlier configs have left unfinished, each file under its own archive. */
export class EarlierArchives {
  readonly #parts: Base;
  readonly #abort = new AbortController();
  /** What is in the way, by folder. */
  readonly #troubles = new Map<string, SinkTrouble>();
  #cancel: () => void = () => undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(parts: Base) {
    this.#parts = parts;
  }

  get troubles(): readonly SinkTrouble[] {
    return [...this.#troubles.values()];
  }

  start(): void {
    this.#looking = this.#look().finally(() => {
      if (!this.#abort.signal.aborted) this.#cancel = this.#parts.clock.after(EVERY, () => this.start());
    });
  }

  readonly stop: Stop = async () => {
    this.#cancel();
    this.#abort.abort();
    await this.#looking;
  };

  /** Never rejects. */
  async #look(): Promise<void> {
    const { proof, log } = this.#parts;
    const noted = await proof().then(
      ({ heads }) => heads.archives(),
      (error: unknown) => {
        log.error({ error: messageOf(error) }, 'the notes of earlier archives cannot be read');
        return [];
      },
    );
    const now = this.#placesOfNow();
    const seen = new Set<string>();
    for (const archive of noted)
      for (const folder of foldersOf(archive)) {
        if (now.has(realOf(folder))) continue;
        seen.add(folder);
        await this.#finish(folder, archive);
        if (this.#abort.signal.aborted) return;
      }
    for (const folder of this.#troubles.keys()) if (!seen.has(folder)) this.#troubles.delete(folder);
  }

  async #finish(folder: string, archive: NotedArchive): Promise<void> {
    const { log, clock, proof, users, plan } = this.#parts;
    const name = archive.sinks[0] ?? `earlier archive ${folder}`;
    const isErased = users.has.bind(users);
    const stores = (url: string): Promise<ObjectStore> => openStore(url, plan.value.config.storage);
    const context = { name, log, clock, proof, isErased, openStore: stores };
    try {
      const missing = missingPlace({ path: folder, archive });
      if (missing !== null) return this.#tell(folder, 'archive_missing', missing.message);
      const { finishAbandoned } = await import('../sinks/files/abandoned.ts');
      const place = { folder, archive: archive.place };
      const failed = await finishAbandoned(place, context, this.#abort.signal);
      if (failed === null) this.#troubles.delete(folder);
      else this.#tell(folder, 'unfinished', `${failed}; files of an earlier config stay unfinished`);
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.#tell(folder, 'unfinished', `${folder}, of an earlier config: ${messageOf(error)}`);
    }
  }

  #tell(folder: string, code: string, why: string): void {
    const before = this.#troubles.get(folder);
    const detail = `${why} (tried again every ${EVERY / 1000} s)`;
    if (before?.detail === detail) return;
    this.#troubles.set(folder, { code, detail, since: before?.since ?? this.#parts.clock.now() });
    this.#parts.log.error({ folder, detail }, 'an archive of an earlier config cannot be finished');
  }

  /** The folders that sinks of the config finish themselves, as they open them. */
  #placesOfNow(): ReadonlySet<string> {
    const sinks = Object.values(this.#parts.plan.value.config.sinks);
    return new Set(
      sinks.flatMap(({ description }) => (description.folders ?? []).map(({ path }) => realOf(path))),
    );
  }
}

/** Where files of an archive lie that are not finished. */
function foldersOf({ place, spools }: NotedArchive): readonly string[] {
  return isStoreUrl(place) ? spools : [place];
}
