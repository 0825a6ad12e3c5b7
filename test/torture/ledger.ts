import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** What has been tried, in numbers that add up. */
export interface Progress {
  /** Seeds in front of it are tried. */
  readonly next: number;
  readonly seconds: number;
  /** Each since the beginning of the run. */
  readonly counts: Readonly<Record<string, number>>;
  readonly failed: readonly string[];
}

type Kind = 'histories' | 'states';

/** A line: what was tried since the line before it of the same run. */
interface Entry extends Progress {
  readonly at: string;
  readonly kind: Kind;
  /** The commit; with a `+` where files had changed since. */
  readonly code: string;
}

/**
 * A file to which runs add what they have tried, so that a long one can be ended and continued, and those of different
 * commits are told apart. Without a file it is empty and keeps nothing.
 */
export class Ledger {
  readonly #file: string | null;
  readonly #code: string;
  readonly #entries: Entry[] = [];

  constructor(file: string | null) {
    this.#file = file;
    this.#code = file === null ? '' : commit();
    if (file !== null && existsSync(file))
      for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean))
        this.#entries.push(JSON.parse(line) as Entry);
  }

  /** The first seed that no run has tried. */
  next(kind: Kind): number | null {
    const own = this.#of(kind);
    return own.length === 0 ? null : Math.max(...own.map(({ next }) => next));
  }

  /** How many histories, or states, all runs have tried. */
  sum(kind: Kind): number {
    return this.#of(kind).reduce((sum, { counts }) => sum + (counts[kind] ?? 0), 0);
  }

  /** Adds what a run has done each time it tells how far it is. */
  follow(kind: Kind): (progress: Progress) => void {
    let before: Progress = { next: 0, seconds: 0, counts: {}, failed: [] };
    return (progress) => {
      const counts = Object.entries(progress.counts)
        .map(([name, count]) => [name, count - (before.counts[name] ?? 0)] as const)
        .filter(([, count]) => count !== 0);
      if (counts.length > 0)
        this.#add({
          at: new Date().toISOString(),
          kind,
          code: this.#code,
          next: progress.next,
          seconds: progress.seconds - before.seconds,
          counts: Object.fromEntries(counts),
          failed: progress.failed.slice(before.failed.length),
        });
      before = { ...progress, failed: [...progress.failed] };
    };
  }

  /** For a person: a line for each commit and kind. */
  lines(): string[] {
    if (this.#file === null) return [];
    const groups = Map.groupBy(this.#entries, ({ kind, code }) => `${kind} on ${code}`);
    return [...groups].map(([name, entries]) => {
      const counts = new Map<string, number>();
      for (const [what, count] of entries.flatMap((entry) => Object.entries(entry.counts)))
        counts.set(what, (counts.get(what) ?? 0) + count);
      const text = [...counts].map(([what, count]) => `${what} ${count}`).join(', ');
      const failed = entries.flatMap((entry) => entry.failed);
      const seconds = Math.round(entries.reduce((sum, entry) => sum + entry.seconds, 0));
      return `${name} in ${seconds} s: ${text}; ${failed.length === 0 ? 'none failed' : `failed: ${failed.join(', ')}`}`;
    });
  }

  #of(kind: Kind): Entry[] {
    return this.#entries.filter((entry) => entry.kind === kind);
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    if (this.#file !== null) appendFileSync(this.#file, `${JSON.stringify(entry)}\n`);
  }
}

function commit(): string {
  try {
    return git('rev-parse', '--short=10', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+');
  } catch {
    return 'unknown';
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim();
}
