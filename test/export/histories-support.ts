import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { compactArchive } from '../../src/archive/compact.ts';
import { Places } from '../../src/archive/places.ts';
import { compactOptions } from '../archive/compact-support.ts';
import { erasuresOver, folderStore } from '../privacy/erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { archive, exported, mealEvent } from './support.ts';

/** Users of made-up meals, and what a kill can leave of a run. */
export const USERS = 7;
export type Kill = 'before its line' | 'after its line';

/** An archive to which things happen, and its export in NDJSON: both are read here by gunzip and JSON.parse alone. */
export class ExportHistory {
  readonly path: string;
  readonly out: string;
  /** Bytes of files that were cut short or taken away, by name. */
  readonly #faults = new Map<string, Buffer>();
  #meals = 0;
  /** Something was erased while rows of files that are at fault lay beside it. */
  #mayLose = false;

  private constructor(path: string, out: string) {
    this.path = path;
    this.out = out;
  }

  static async begin(): Promise<ExportHistory> {
    return new ExportHistory(await temporaryFolder(), await temporaryFolder());
  }

  async add(count: number): Promise<void> {
    const from = this.#meals + 1;
    this.#meals += count;
    await archive(
      this.path,
      Array.from({ length: count }, (_, n) => mealEvent(from + n)),
    );
  }

  truncate(pick: number): void {
    const file = this.#pick(pick);
    if (file === null) return;
    const bytes = this.#fault(file);
    writeFileSync(join(this.path, file), bytes.subarray(0, Math.floor(bytes.length * 0.7)));
  }

  remove(pick: number): void {
    const file = this.#pick(pick);
    if (file === null) return;
    this.#fault(file);
    rmSync(join(this.path, file));
  }

  restore(): void {
    for (const [file, bytes] of this.#faults) writeFileSync(join(this.path, file), bytes);
    this.#faults.clear();
  }

  async erase(user: number): Promise<void> {
    const { erasures } = erasuresOver(await temporaryFolder(), [folderStore(this.path)]);
    await erasures.request({ by: 'user', id: `user-${user}`, team: null }, true);
    await erasures.run();
    this.#mayLose = true;
  }

  async compact(): Promise<void> {
    const places = new Places();
    await compactArchive(this.path, compactOptions(places));
    await places.close();
  }

  /** Exports, and says what is wrong with what has come of it; nothing when it is right. */
  /** @param today the running day of an export that follows */
  async export(again: boolean, today?: string): Promise<string[]> {
    const before = this.exported();
    const { complete, rejects, problems, missing, lost, messages } = await this.#run(again, today);
    const isDone = complete && rejects + problems + missing + lost === 0;
    const after = this.exported();
    const whole = this.#archived();
    const faulty = new Set([...this.#faults.values()].flatMap((bytes) => idsIn(bytes)));
    const isRight = (id: string): boolean => whole.has(id) || faulty.has(id);
    const gone = before.filter((id) => isRight(id) && !after.includes(id));
    const wrong = [
      ...(new Set(after).size < after.length ? [`twice: ${after.join(' ')}`] : []),
      ...after.filter((id) => !isRight(id)).map((id) => `is erased, and there: ${id}`),
      // A step is made again as a whole: a file that is whole again waits for another one that is missing.
      ...(isDone ? [...whole].filter((id) => !after.includes(id)).map((id) => `is not there: ${id}`) : []),
      ...(this.#mayLose ? [] : gone.map((id) => `was right, and is gone: ${id}`)),
      ...(!isDone && this.#faults.size === 0 ? ['is not done, and nothing is at fault'] : []),
      // A file that was read before it was cut short is not looked at again.
      ...(isDone && (this.#areRemoved() || !isAll(faulty, after))
        ? ['is done, and the archive is not whole']
        : []),
    ];
    if (isDone) this.#mayLose = false;
    return wrong.length === 0 ? [] : [...wrong, ...messages.filter((line) => line.startsWith('dt='))];
  }

  /** Exports, and leaves what a run that was killed at its last step leaves. */
  async kill(at: Kill, again: boolean): Promise<void> {
    const before = await temporaryFolder();
    cpSync(this.out, before, { recursive: true });
    const steps = this.#steps().length;
    await this.#run(again);
    const last = this.#steps().at(-1);
    if (last === undefined || this.#steps().length === steps) return;
    const work = (file: string): string => join(this.out, '_work', encodeURIComponent(file));
    for (const { file } of last.files) renameSync(join(this.out, file), work(file));
    for (const file of last.removes)
      if (existsSync(join(before, file))) cpSync(join(before, file), join(this.out, file));
    if (at === 'after its line') return;
    const ledger = join(this.out, '_export.jsonl');
    const lines = readFileSync(ledger, 'utf8').trimEnd().split('\n');
    writeFileSync(ledger, `${lines.slice(0, -1).join('\n')}\n${lines.at(-1)?.slice(0, 20) ?? ''}`);
  }

  /** Ids of the meals in the export, each as often as it is there. */
  exported(): string[] {
    if (!existsSync(join(this.out, 'meals'))) return [];
    return readdirSync(join(this.out, 'meals'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ndjson.gz'))
      .flatMap((name) => idsIn(readFileSync(join(this.out, 'meals', name))));
  }

  #run(again: boolean, today?: string) {
    const more = today === undefined ? {} : { today };
    return exported([this.path], this.out, {
      table: 'meals',
      format: 'ndjson',
      again,
      stepBytes: 4000,
      ...more,
    });
  }

  #steps(): { files: { file: string }[]; removes: string[] }[] {
    const ledger = join(this.out, '_export.jsonl');
    if (!existsSync(ledger)) return [];
    const lines = readFileSync(ledger, 'utf8').split('\n').slice(1, -1);
    return lines.map((line) => JSON.parse(line) as { files: { file: string }[]; removes: string[] });
  }

  /** Files that are there and whole. */
  #files(): string[] {
    return readdirSync(this.path, { recursive: true, encoding: 'utf8' })
      .filter((name) => /^dt=.*\.ndjson\.gz$/.test(name) && !this.#faults.has(name))
      .sort();
  }

  #areRemoved(): boolean {
    return [...this.#faults.keys()].some((file) => !existsSync(join(this.path, file)));
  }

  #archived(): Set<string> {
    return new Set(this.#files().flatMap((file) => idsIn(readFileSync(join(this.path, file)))));
  }

  #pick(pick: number): string | null {
    const files = this.#files();
    return files[pick % Math.max(files.length, 1)] ?? null;
  }

  #fault(file: string): Buffer {
    const bytes = readFileSync(join(this.path, file));
    this.#faults.set(file, bytes);
    return bytes;
  }
}

function idsIn(bytes: Buffer): string[] {
  const lines = gunzipSync(bytes).toString().split('\n').filter(Boolean);
  return lines.map((line) => {
    const row = JSON.parse(line) as { id: string; event?: { data: { id: string } } };
    return row.event?.data.id ?? row.id;
  });
}

function isAll(ids: ReadonlySet<string>, found: readonly string[]): boolean {
  return [...ids].every((id) => found.includes(id));
}
