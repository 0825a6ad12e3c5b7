import { hash } from 'node:crypto';

/**
 * What was confirmed of late, in two generations: when the younger is full the older is let go. A Map from which the oldest is
 * taken each time keeps holes in front that every look at it steps over: 100 µs for each event, once it was full.
 */
export class Recent {
  readonly #most: number;
  #young = new Set<string>();
  #old = new Set<string>();

  /** @param most how many a generation has */
  constructor(most: number) {
    this.#most = most;
  }

  has(name: string): boolean {
    return this.#young.has(name) || this.#old.has(name);
  }

  add(name: string): void {
    this.#young.add(name);
    if (this.#young.size < this.#most) return;
    this.#old = this.#young;
    this.#young = new Set();
  }
}

/** What tells a repetition: the bytes too. @param kind what it becomes */
export function recentName(kind: string, source: string, key: string, body: Buffer): string {
  return `${hash('sha256', body, 'base64')}${kind} ${source.length}:${source}${key}`;
}
