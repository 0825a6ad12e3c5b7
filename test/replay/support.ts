import { Places } from '../../src/archive/places.ts';
import { type Listing, listPath } from '../../src/replay/list.ts';
import { FileReader } from '../../src/replay/read-file.ts';
import type { Selection } from '../../src/replay/selection.ts';
import type { Candidate, FileUnit, Problem, Step, Unit } from '../../src/replay/unit.ts';
import { createValidator } from '../../src/receive/validate/envelope.ts';
import { ENVELOPE } from '../support/defaults.ts';

/** A selection that takes every event. */
export const ALL: Selection = { types: [], teams: [], users: [], since: null, until: null };

export function listing(places = new Places(), some: Partial<Selection> = {}): Listing {
  return {
    places,
    selection: { ...ALL, ...some },
    onPassedOver: () => undefined,
    onIgnored: () => undefined,
  };
}

/** A reader that asks little of events which others have written. */
export function readerOf(more: Partial<ConstructorParameters<typeof FileReader>[0]> = {}): FileReader {
  const validate = createValidator({ ...ENVELOPE, userIds: 'text', require: [] });
  return new FileReader({ places: new Places(), selection: ALL, validate, ...more });
}

export function filesOf(units: readonly Unit[]): FileUnit[] {
  return units.filter((unit) => unit.kind === 'file');
}

export async function unitsOf(path: string, about = listing()): Promise<Unit[]> {
  return Array.fromAsync(listPath(path, about));
}

export interface Read {
  readonly found: Candidate[];
  readonly problems: Problem[];
  readonly steps: Step[];
}

/** Reads files of an archive one after the other, and passes over what is no file but for problems. */
export async function readUnits(units: readonly Unit[], reader = readerOf(), from = 0): Promise<Read> {
  const read: Read = { found: [], problems: [], steps: [] };
  for (const unit of units) {
    if (unit.kind === 'unreadable') read.problems.push(unit);
    if (unit.kind !== 'file') continue;
    for await (const step of reader.read(unit, from)) {
      read.found.push(...step.found);
      read.problems.push(...step.problems);
      read.steps.push(step);
    }
  }
  return read;
}

/** Ids of what is found; of what cannot be read, where and why. */
export function idsOf({ found, problems }: Read): string[] {
  return [
    ...problems.map(({ where, reason }) => `${where}: ${reason}`),
    ...found.map(({ event }) => event.id),
  ];
}
