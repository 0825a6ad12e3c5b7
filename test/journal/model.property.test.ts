import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import type { EraseStep } from '../../src/journal/erase.ts';
import { unpackHeads } from '../../src/journal/segments/heads.ts';
import { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { BOUNDS, allIn, batchOf, NOW } from './support.ts';
import { runCount } from '../support/run-count.ts';

/** Small, so that segments are begun, cleared away, and short of space. */
const LIMITS = { ...BOUNDS, retention: 1600, dedupWindow: 5000, maxBytes: 700_000 };

/** The oracle: plain lists. */
interface Model {
  now: number;
  lastSeq: number;
  cursor: number;
  /** Every event that ever had a seq; null once it is erased. */
  readonly events: Map<number, Event | null>;
  readonly received: Map<number, number>;
  /** When each id was seen. */
  readonly ids: Map<string, number>;
  readonly counts: { accepted: number; duplicates: number; quarantined: number };
}

interface Real {
  folder: string;
  store: Store;
  readonly root: string;
  runs: number;
}

type Command = fc.Command<Model, Real>;

function command(name: string, run: (model: Model, real: Real) => void): Command {
  return { check: () => true, run, toString: () => name };
}

const ids = fc.array(fc.integer({ min: 1, max: 25 }), { minLength: 1, maxLength: 8 });

function append(numbers: readonly number[], size: number, isInvalid: boolean): Command {
  return command(`append(${numbers.join()}, ${size}, ${isInvalid})`, (model, { store }) => {
    const events = numbers.map((n) =>
      makeEvent({
        id: `id-${n}`,
        user: `user-${n % 3}`,
        receivedAt: model.now,
        body: Buffer.alloc(size, `${n} `),
      }),
    );
    const isKnown = (id: string): boolean =>
      (model.ids.get(id) ?? -Infinity) >= model.now - LIMITS.dedupWindow;
    let answers: readonly number[];
    try {
      ({ answers } = store.append(batchOf(events, isInvalid ? '[]' : null), model.now));
    } catch (error) {
      // Nothing that is settled could make room for it.
      expect(error).toMatchObject({ code: 'journal_full' });
      return;
    }
    for (const [index, event] of events.entries()) {
      const answer = answers[index] ?? NaN;
      // Known ids come with bytes of the same or another size: a duplicate, or a reused id.
      if (isKnown(event.id)) {
        expect([0, -2]).toContain(answer);
        if (answer === 0) model.counts.duplicates += 1;
        else model.counts.quarantined += 1;
      } else {
        model.ids.set(event.id, model.now);
        if (isInvalid) {
          expect(answer).toBe(-1);
          model.counts.quarantined += 1;
        } else {
          model.lastSeq += 1;
          expect(answer).toBe(model.lastSeq);
          model.events.set(model.lastSeq, event);
          model.received.set(model.lastSeq, model.now);
          model.counts.accepted += 1;
        }
      }
    }
  });
}

function settle(share: number): Command {
  return command(`settle(${share})`, (model, { store }) => {
    model.cursor += Math.floor((model.lastSeq - model.cursor) * share);
    store.cursors.move([['sink', model.cursor]]);
  });
}

function pass(time: number): Command {
  return command(`pass(${time})`, (model, { store }) => {
    model.now += time;
    for (let more = true; more;) more = store.maintain(model.now);
    const all = [...model.events.keys()].map((seq) => model.received.get(seq) ?? 0);
    const isOld = Math.max(...all) < model.now - LIMITS.retention;
    if (model.cursor === model.lastSeq && isOld)
      expect(store.status(model.now)).toMatchObject({ firstSeq: model.lastSeq + 1, events: 0 });
  });
}

function erase(n: number): Command {
  return command(`erase(user-${n})`, (model, { store }) => {
    const subjects = [{ request: 'r', by: 'user', id: `user-${n}`, team: null }] as const;
    for (let step: EraseStep | null = { do: 'setAside' }; step !== null;)
      step = store.eraser.perform(subjects, step);
    for (const [seq, event] of model.events) if (event?.user === `user-${n}`) model.events.set(seq, null);
  });
}

/** @param isKilled leaves the files as they are at the moment */
function reopen(isKilled: boolean): Command {
  return command(isKilled ? 'kill' : 'reopen', (_model, real) => {
    const { folder, store, root } = real;
    if (isKilled) {
      real.runs += 1;
      real.folder = `${root}-${real.runs}`;
      cpSync(folder, real.folder, { recursive: true });
    }
    store.close();
    real.store = new Store({ ...LIMITS, path: real.folder });
    real.store.cursors.open('sink');
  });
}

function look(): Command {
  return command('look', ({ events, lastSeq, cursor, counts, now }, { store }) => {
    const status = store.status(now);
    const { firstSeq } = status;
    expect(status.lastSeq).toBe(lastSeq);
    // What is not settled is there.
    expect(firstSeq).toBeLessThanOrEqual(cursor + 1);
    const all = allIn(store);
    expect(all.map(({ seq }) => seq)).toEqual(
      Array.from({ length: lastSeq - firstSeq + 1 }, (_, n) => firstSeq + n),
    );
    const heads: { seq: number; id: string }[] = [];
    const headsAfter = (seq: number) => unpackHeads(store.heads(seq));
    for (let page = headsAfter(0); page.length > 0; page = headsAfter(page.at(-1)?.seq ?? 0))
      heads.push(...page);
    expect(heads.map(({ seq, id }) => ({ seq, id }))).toEqual(all.map(({ seq, id }) => ({ seq, id })));
    let waiting = 0;
    for (const { seq, id, body, handling } of all) {
      const event = events.get(seq) ?? null;
      if (event === null) expect({ id, handling }).toEqual({ id: '', handling: { only: [], erased: true } });
      else expect({ id, body }).toEqual({ id: event.id, body: event.body });
      if (seq > cursor) waiting += 1;
    }
    expect(status.cursors).toMatchObject([{ sink: 'sink', seq: cursor, backlog: waiting }]);
    const found = Object.fromEntries(['accepted', 'duplicates', 'quarantined'].map((kind) => [kind, 0]));
    for (const { kind, n } of store.account(0, 2 * NOW).counts) found[kind] = (found[kind] ?? 0) + n;
    expect(found).toEqual(counts);
    expect(status.damaged).toBe(0);
  });
}

test('whatever is done to it, and killed wherever, a journal has what plain lists have', async () => {
  const root = await temporaryFolder();
  let runs = 0;
  const commands = fc.commands(
    [
      fc
        .tuple(ids, fc.integer({ min: 0, max: 20_000 }), fc.boolean())
        .map(([numbers, size, odd]) => append(numbers, size, odd && size % 4 === 0)),
      fc.double({ min: 0, max: 1, noNaN: true }).map(settle),
      fc.constantFrom(1, 100, 700, 2000).map(pass),
      fc.integer({ min: 0, max: 2 }).map(erase),
      fc.boolean().map(reopen),
      fc.constant(look()),
    ],
    { maxCommands: 60, size: 'max' },
  );
  fc.assert(
    fc.property(commands, (steps) => {
      runs += 1;
      const folder = join(root, `run-${runs}`);
      mkdirSync(folder);
      const store = new Store({ ...LIMITS, path: folder });
      store.cursors.open('sink');
      const real: Real = { folder, store, root: folder, runs: 0 };
      const model: Model = {
        now: NOW,
        lastSeq: 0,
        cursor: 0,
        events: new Map(),
        received: new Map(),
        ids: new Map(),
        counts: { accepted: 0, duplicates: 0, quarantined: 0 },
      };
      try {
        fc.modelRun(() => ({ model, real }), [...steps, look()]);
        expect(real.store.lastSeq).toBe(model.lastSeq);
      } finally {
        real.store.close();
      }
    }),
    { numRuns: runCount({ quick: 15, long: 75 }) },
  );
});
