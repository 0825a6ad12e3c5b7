import { messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import type { NotedArchive } from '../core/proof.ts';
import type { SinkTrouble } from '../core/sink.ts';
import { missingPlace, realOf } from '../privacy/erase/earlier-archives.ts';
import type { Stop } from '../lib/parts.ts';
import { type Base, sinkContext } from './system.ts';

/** Milliseconds between two checks: a disk may be back, a reload may have removed a sink. */
const CHECK_EVERY = 10_000;

/** Closes the files that sinks of earlier configs have left open, each in its own archive. */
export class EarlierArchives {
  readonly #base: Base;
  readonly #abort = new AbortController();
  /** By folder. */
  readonly #troubles = new Map<string, SinkTrouble>();
  #cancel: () => void = () => undefined;
  #checking: Promise<void> = Promise.resolve();

  constructor(base: Base) {
    this.#base = base;
  }

  get troubles(): readonly SinkTrouble[] {
    return [...this.#troubles.values()];
  }

  start(): void {
    this.#checking = this.#check().finally(() => {
      if (!this.#abort.signal.aborted) this.#cancel = this.#base.clock.after(CHECK_EVERY, () => this.start());
    });
  }

  readonly stop: Stop = async () => {
    this.#cancel();
    this.#abort.abort();
    await this.#checking;
  };

  /** Never rejects. */
  async #check(): Promise<void> {
    const { proof, log, plan } = this.#base;
    const noted = await proof().then(
      ({ heads }) => heads.archives(),
      (error: unknown) => {
        log.error({ error: messageOf(error) }, 'the notes of earlier archives cannot be read');
        return [];
      },
    );
    // The sinks of the config close the files in their own folders when they open.
    const current = new Set(
      Object.values(plan.value.config.sinks).flatMap(({ description: { folders = [] } }) =>
        folders.map(({ path }) => realOf(path)),
      ),
    );
    const seen = new Set<string>();
    for (const archive of noted)
      for (const folder of isStoreUrl(archive.place) ? archive.spools : [archive.place]) {
        if (current.has(realOf(folder))) continue;
        seen.add(folder);
        await this.#finish(folder, archive);
        if (this.#abort.signal.aborted) return;
      }
    for (const folder of this.#troubles.keys()) if (!seen.has(folder)) this.#troubles.delete(folder);
  }

  async #finish(folder: string, archive: NotedArchive): Promise<void> {
    const name = archive.sinks[0] ?? `earlier archive ${folder}`;
    const context = { name, ...sinkContext(this.#base) };
    try {
      const missing = missingPlace({ path: folder, archive });
      if (missing !== null) return this.#note(folder, 'archive_missing', missing.message);
      const { finishAbandoned } = await import('../sinks/files/abandoned.ts');
      const place = { folder, archive: archive.place };
      const failed = await finishAbandoned(place, context, this.#abort.signal);
      if (failed === null) this.#troubles.delete(folder);
      else this.#note(folder, 'unfinished', `${failed}; files of an earlier config stay unfinished`);
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.#note(folder, 'unfinished', `${folder}, of an earlier config: ${messageOf(error)}`);
    }
  }

  #note(folder: string, code: string, why: string): void {
    const before = this.#troubles.get(folder);
    const detail = `${why} (tried again every ${CHECK_EVERY / 1000} s)`;
    if (before?.detail === detail) return;
    this.#troubles.set(folder, { code, detail, since: before?.since ?? this.#base.clock.now() });
    this.#base.log.error({ folder, detail }, 'an archive of an earlier config cannot be finished');
  }
}
