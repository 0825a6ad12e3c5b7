import { ManualClock } from '../deliver/support.ts';
import type { Settings } from './settings.ts';

interface Owed {
  readonly id: string;
  /** For each sink that is due, the names it has gone by since. More than one set when routes changed meanwhile. */
  readonly choices: readonly (readonly { readonly names: string[] }[])[];
}

/**
 * What is outside the receiver: the far sides of its sinks, the clock, and the list of what is owed. It is the oracle, and
 * shares nothing with the product: it decides for each accepted id, from the settings alone, who has to have it.
 */
export class World {
  readonly folder: string;
  readonly clock = new ManualClock();
  readonly #blocked = new Set<string>();
  readonly #got = new Map<string, Set<string>>();
  readonly #owed: Owed[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  block(name: string): void {
    this.#blocked.add(name);
  }

  unblock(name: string): void {
    this.#blocked.delete(name);
  }

  unblockAll(): void {
    this.#blocked.clear();
  }

  isBlocked(name: string): boolean {
    return this.#blocked.has(name);
  }

  deliver(name: string, id: string): void {
    const ids = this.#got.get(name);
    if (ids === undefined) this.#got.set(name, new Set([id]));
    else ids.add(id);
  }

  /** An event was acknowledged while one of these settings was in force. */
  accepted(id: string, type: string, settings: readonly Settings[]): void {
    const choices = settings.map(({ routes }) => {
      const to = routes.find((route) => type.startsWith(route.type))?.to ?? [];
      return to.map((name) => ({ names: [name] }));
    });
    this.#owed.push({ id, choices });
  }

  /** What was owed to a sink of one name is owed to another's. */
  succeeded(old: string, heir: string): void {
    for (const { choices } of this.#owed)
      for (const due of choices) for (const { names } of due) if (names.at(-1) === old) names.push(heir);
  }

  /** The ids that are where they should not be, or nowhere. Empty when all is well. */
  faults(letters: readonly { readonly id: string; readonly sink: string }[]): string[] {
    const dead = new Map<string, Set<string>>();
    for (const { id, sink } of letters) dead.set(id, (dead.get(id) ?? new Set()).add(sink));
    const faults: string[] = [];
    for (const { id, choices } of this.#owed) {
      const has = (name: string): boolean =>
        this.#got.get(name)?.has(id) === true || dead.get(id)?.has(name) === true;
      const isWhole = (due: Owed['choices'][number]): boolean => due.every(({ names }) => names.some(has));
      if (!choices.some(isWhole)) faults.push(`${id} is not at ${text(choices)}`);
      const allowed = new Set(choices.flat().flatMap(({ names }) => names));
      for (const [name, ids] of this.#got)
        if (ids.has(id) && !allowed.has(name)) faults.push(`${id} is at ${name}`);
    }
    return faults;
  }
}

function text(choices: Owed['choices']): string {
  return choices.map((due) => due.map(({ names }) => names.join('=')).join(' and ')).join(', or ');
}
